"""A step on a Synapse Spark pool."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

SynapseSparkStep = _stand_in("azureml.pipeline.steps.SynapseSparkStep")
