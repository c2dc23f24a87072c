"""A fixed address for the versions of a pipeline."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

PipelineEndpoint = _stand_in("azureml.pipeline.core.PipelineEndpoint")
PipelineIdVersion = _stand_in("azureml.pipeline.core.pipeline_endpoint.PipelineIdVersion")
PipelineVersion = _stand_in("azureml.pipeline.core.pipeline_endpoint.PipelineVersion")
