"""A step on Data Lake Analytics."""

from lapis.sdk.pipelines.cloud_steps import AdlaStep as AdlaStep
