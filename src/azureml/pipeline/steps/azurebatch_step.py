"""A step on Azure Batch."""

from lapis.sdk.pipelines.cloud_steps import AzureBatchStep as AzureBatchStep
