"""Registered models, and how they are to be served."""

from azureml.core.dataset import Dataset as Dataset
from lapis.sdk.later import stand_in as _stand_in

InferenceConfig = _stand_in("azureml.core.model.InferenceConfig")
Model = _stand_in("azureml.core.Model")
ModelPackage = _stand_in("azureml.core.model.ModelPackage")
