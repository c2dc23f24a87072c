"""A step that runs under MPI."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

MpiStep = _stand_in("azureml.pipeline.steps.MpiStep")
