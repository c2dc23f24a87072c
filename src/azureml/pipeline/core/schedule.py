"""Pipelines that run at their time."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

Schedule = _stand_in("azureml.pipeline.core.Schedule")
ScheduleRecurrence = _stand_in("azureml.pipeline.core.ScheduleRecurrence")
TimeZone = _stand_in("azureml.pipeline.core.TimeZone")
