"""Pipelines that can still be changed."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

PipelineDraft = _stand_in("azureml.pipeline.core.PipelineDraft")
