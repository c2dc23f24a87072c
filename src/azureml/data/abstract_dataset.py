"""What all datasets have in common."""

from lapis.sdk.later import stand_in as _stand_in

AbstractDataset = _stand_in("azureml.data.abstract_dataset.AbstractDataset")
