"""A step that runs under MPI."""

from lapis.sdk.pipelines.script_steps import MpiStep as MpiStep
