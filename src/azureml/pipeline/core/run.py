"""The runs of pipelines and of their steps."""

from lapis.sdk.pipelines.pipeline_run import PipelineRun as PipelineRun
from lapis.sdk.pipelines.step_run import StepRun as StepRun
from lapis.sdk.pipelines.step_run import StepRunOutput as StepRunOutput
