"""Datasets of files."""

from lapis.sdk.later import stand_in as _stand_in

FileDataset = _stand_in("azureml.data.FileDataset")
