"""A step on a Synapse Spark pool."""

from lapis.sdk.later import stand_in as _stand_in

SynapseSparkStep = _stand_in("azureml.pipeline.steps.SynapseSparkStep")
