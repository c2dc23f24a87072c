"""The one place that knows which release this is."""

VERSION = "0.1.0"
# What `azureml.core.VERSION` says: the last release of the SDK whose surface we offer.
AZUREML_VERSION = "1.62.0"
