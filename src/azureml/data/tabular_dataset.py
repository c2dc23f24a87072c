"""Datasets of rows and columns."""

from lapis.sdk.later import stand_in as _stand_in

TabularDataset = _stand_in("azureml.data.TabularDataset")
