"""What a step writes, as a dataset."""

from lapis.sdk.pipelines.output_datasets import DatasetRegistration as DatasetRegistration
from lapis.sdk.pipelines.output_datasets import PipelineOutputAbstractDataset as PipelineOutputAbstractDataset
from lapis.sdk.pipelines.output_datasets import PipelineOutputFileDataset as PipelineOutputFileDataset
from lapis.sdk.pipelines.output_datasets import PipelineOutputTabularDataset as PipelineOutputTabularDataset
