"""Pipelines."""

from lapis.sdk.pipelines.pipeline import Pipeline as Pipeline
