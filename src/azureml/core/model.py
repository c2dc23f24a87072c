"""Registered models, and how they are to be served."""

from azureml.core.dataset import Dataset as Dataset
from lapis.sdk.inference_config import InferenceConfig as InferenceConfig
from lapis.sdk.model import Model as Model
from lapis.sdk.model_package import ModelPackage as ModelPackage
