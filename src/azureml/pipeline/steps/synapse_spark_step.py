"""A step on a Synapse Spark pool."""

from lapis.sdk.pipelines.cloud_steps import SynapseSparkStep as SynapseSparkStep
