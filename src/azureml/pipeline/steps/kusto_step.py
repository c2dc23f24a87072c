"""A step on Kusto."""

from lapis.sdk.pipelines.cloud_steps import KustoStep as KustoStep
