"""What a step writes, as a dataset."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetRegistration = _stand_in("azureml.pipeline.core.pipeline_output_dataset.DatasetRegistration")
PipelineOutputAbstractDataset = _stand_in("azureml.pipeline.core.pipeline_output_dataset.PipelineOutputAbstractDataset")
PipelineOutputFileDataset = _stand_in("azureml.pipeline.core.pipeline_output_dataset.PipelineOutputFileDataset")
PipelineOutputTabularDataset = _stand_in("azureml.pipeline.core.pipeline_output_dataset.PipelineOutputTabularDataset")
