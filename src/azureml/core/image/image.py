"""What all images have in common."""

from lapis.sdk.later import stand_in as _stand_in

Asset = _stand_in("azureml.core.image.image.Asset")
Image = _stand_in("azureml.core.Image")
ImageConfig = _stand_in("azureml.core.image.image.ImageConfig")
TargetRuntime = _stand_in("azureml.core.image.image.TargetRuntime")
