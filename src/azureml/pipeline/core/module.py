"""Steps that are kept under a name and a version."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

Module = _stand_in("azureml.pipeline.core.Module")
ModuleVersion = _stand_in("azureml.pipeline.core.ModuleVersion")
ModuleVersionDescriptor = _stand_in("azureml.pipeline.core.ModuleVersionDescriptor")
