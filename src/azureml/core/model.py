"""Registered models, and how they are to be served."""

from azureml.core.dataset import Dataset as Dataset
from lapis.sdk.later import stand_in as _stand_in
from lapis.sdk.model import Model as Model

InferenceConfig = _stand_in("azureml.core.model.InferenceConfig")
ModelPackage = _stand_in("azureml.core.model.ModelPackage")
