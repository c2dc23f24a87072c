"""What pipelines are built of."""

from lapis.sdk.pipelines.bindings import PipelineData as PipelineData
from lapis.sdk.pipelines.steps import PipelineStep as PipelineStep
from lapis.sdk.pipelines.steps import StepSequence as StepSequence
