"""Container images and their configuration."""

from lapis.sdk.later import stand_in as _stand_in

ContainerImage = _stand_in("azureml.core.image.ContainerImage")
ContainerImageConfig = _stand_in("azureml.core.image.container.ContainerImageConfig")
