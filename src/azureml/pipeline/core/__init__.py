"""Pipelines: what they are made of, how they run, are published and scheduled."""

from azureml.pipeline.core.builder import PipelineData as PipelineData
from azureml.pipeline.core.builder import PipelineStep as PipelineStep
from azureml.pipeline.core.builder import StepSequence as StepSequence
from azureml.pipeline.core.graph import InputPortBinding as InputPortBinding
from azureml.pipeline.core.graph import OutputPortBinding as OutputPortBinding
from azureml.pipeline.core.graph import PipelineDataset as PipelineDataset
from azureml.pipeline.core.graph import PipelineParameter as PipelineParameter
from azureml.pipeline.core.graph import PortDataReference as PortDataReference
from azureml.pipeline.core.graph import PublishedPipeline as PublishedPipeline
from azureml.pipeline.core.graph import TrainingOutput as TrainingOutput
from azureml.pipeline.core.module import Module as Module
from azureml.pipeline.core.module import ModuleVersion as ModuleVersion
from azureml.pipeline.core.module import ModuleVersionDescriptor as ModuleVersionDescriptor
from azureml.pipeline.core.pipeline import Pipeline as Pipeline
from azureml.pipeline.core.pipeline_draft import PipelineDraft as PipelineDraft
from azureml.pipeline.core.pipeline_endpoint import PipelineEndpoint as PipelineEndpoint
from azureml.pipeline.core.run import PipelineRun as PipelineRun
from azureml.pipeline.core.run import StepRun as StepRun
from azureml.pipeline.core.run import StepRunOutput as StepRunOutput
from azureml.pipeline.core.schedule import Schedule as Schedule
from azureml.pipeline.core.schedule import ScheduleRecurrence as ScheduleRecurrence
from azureml.pipeline.core.schedule import TimeZone as TimeZone
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
