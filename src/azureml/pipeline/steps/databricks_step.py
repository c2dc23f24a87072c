"""A step on Databricks."""

from lapis.sdk.pipelines.cloud_steps import DatabricksStep as DatabricksStep
