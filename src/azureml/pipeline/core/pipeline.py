"""Pipelines."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

Pipeline = _stand_in("azureml.pipeline.core.Pipeline")
