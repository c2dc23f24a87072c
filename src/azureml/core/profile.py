"""How much a model needs to serve its requests."""

from lapis.sdk.later import stand_in as _stand_in

ModelProfile = _stand_in("azureml.core.profile.ModelProfile")
