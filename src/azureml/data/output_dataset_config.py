"""What a run writes, kept as a dataset."""

from lapis.sdk.later import stand_in as _stand_in

HDFSOutputDatasetConfig = _stand_in("azureml.data.HDFSOutputDatasetConfig")
LinkFileOutputDatasetConfig = _stand_in("azureml.data.LinkFileOutputDatasetConfig")
LinkTabularOutputDatasetConfig = _stand_in("azureml.data.LinkTabularOutputDatasetConfig")
MountOptions = _stand_in("azureml.data.output_dataset_config.MountOptions")
OutputDatasetConfig = _stand_in("azureml.data.output_dataset_config.OutputDatasetConfig")
OutputFileDatasetConfig = _stand_in("azureml.data.OutputFileDatasetConfig")
OutputTabularDatasetConfig = _stand_in("azureml.data.output_dataset_config.OutputTabularDatasetConfig")
RegistrationConfiguration = _stand_in("azureml.data.output_dataset_config.RegistrationConfiguration")
TransformationMixin = _stand_in("azureml.data.output_dataset_config.TransformationMixin")
UploadOptions = _stand_in("azureml.data.output_dataset_config.UploadOptions")
