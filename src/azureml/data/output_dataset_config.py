"""What a run writes, kept as a dataset."""

from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.data.output_dataset_config import MountOptions as MountOptions
from lapis.sdk.data.output_dataset_config import OutputDatasetConfig as OutputDatasetConfig
from lapis.sdk.data.output_dataset_config import OutputFileDatasetConfig as OutputFileDatasetConfig
from lapis.sdk.data.output_dataset_config import RegistrationConfiguration as RegistrationConfiguration
from lapis.sdk.data.output_dataset_config import TransformationMixin as TransformationMixin
from lapis.sdk.data.output_dataset_config import UploadOptions as UploadOptions
from lapis.sdk.data.output_table_config import OutputTabularDatasetConfig as OutputTabularDatasetConfig

HDFSOutputDatasetConfig = _stand_in("azureml.data.HDFSOutputDatasetConfig")
LinkFileOutputDatasetConfig = _stand_in("azureml.data.LinkFileOutputDatasetConfig")
LinkTabularOutputDatasetConfig = _stand_in("azureml.data.LinkTabularOutputDatasetConfig")
