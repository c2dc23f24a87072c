"""Registered models, and how they are to be served."""

from lapis.later import TYPE_CHECKING
from lapis.sdk.base.names import on_demand as _on_demand
from lapis.sdk.models.model import Model as Model

if TYPE_CHECKING:  # looked up when first used: most scripts only register models
    from azureml.core.dataset import Dataset as Dataset
    from lapis.sdk.models.inference_config import InferenceConfig as InferenceConfig
    from lapis.sdk.models.model_package import ModelPackage as ModelPackage

__getattr__, __dir__ = _on_demand(
    __name__,
    {
        "Dataset": "azureml.core.dataset",
        "InferenceConfig": "lapis.sdk.models.inference_config",
        "ModelPackage": "lapis.sdk.models.model_package",
    },
)
