"""Words for how files are to be read."""

from lapis.sdk.later import stand_in as _stand_in

FileEncoding = _stand_in("azureml.data.dataset_type_definitions.FileEncoding")
FileType = _stand_in("azureml.data.dataset_type_definitions.FileType")
HistogramCompareMethod = _stand_in("azureml.data.dataset_type_definitions.HistogramCompareMethod")
PromoteHeadersBehavior = _stand_in("azureml.data.dataset_type_definitions.PromoteHeadersBehavior")
SkipLinesBehavior = _stand_in("azureml.data.dataset_type_definitions.SkipLinesBehavior")
