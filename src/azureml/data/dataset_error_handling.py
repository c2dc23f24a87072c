"""What goes wrong with a dataset."""

from lapis.sdk.later import stand_in as _stand_in

DatasetExecutionError = _stand_in("azureml.data.dataset_error_handling.DatasetExecutionError")
DatasetValidationError = _stand_in("azureml.data.dataset_error_handling.DatasetValidationError")
