"""Datasets by name and by kind."""

from lapis.sdk.later import stand_in as _stand_in

Dataset = _stand_in("azureml.core.Dataset")
