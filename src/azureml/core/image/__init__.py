"""Container images made of models, before `Model.deploy`."""

from azureml.core.image.container import ContainerImage as ContainerImage
from azureml.core.image.image import Image as Image
from azureml.core.image.unknown_image import UnknownImage as UnknownImage
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
