"""Pipelines."""

from lapis.sdk.later import stand_in as _stand_in

Pipeline = _stand_in("azureml.pipeline.core.Pipeline")
