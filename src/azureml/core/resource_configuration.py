"""How much processor and memory something may take."""

from lapis.sdk.later import stand_in as _stand_in

ResourceConfiguration = _stand_in("azureml.core.resource_configuration.ResourceConfiguration")
