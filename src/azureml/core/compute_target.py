"""The older form of compute targets, and their exception."""

from lapis.errors import ComputeTargetException as ComputeTargetException
from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.compute.compute_target import LocalTarget as LocalTarget

AbstractComputeTarget = _stand_in("azureml.core.compute_target.AbstractComputeTarget")
attach_legacy_compute_target = _stand_in("azureml.core.attach_legacy_compute_target")
is_compute_target_prepared = _stand_in("azureml.core.is_compute_target_prepared")
prepare_compute_target = _stand_in("azureml.core.prepare_compute_target")
remove_legacy_compute_target = _stand_in("azureml.core.remove_legacy_compute_target")
