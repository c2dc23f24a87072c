"""When a run of the search is ended early."""

from lapis.sdk.later import stand_in as _stand_in

BanditPolicy = _stand_in("azureml.train.hyperdrive.BanditPolicy")
EarlyTerminationPolicy = _stand_in("azureml.train.hyperdrive.EarlyTerminationPolicy")
MedianStoppingPolicy = _stand_in("azureml.train.hyperdrive.MedianStoppingPolicy")
NoTerminationPolicy = _stand_in("azureml.train.hyperdrive.NoTerminationPolicy")
TruncationSelectionPolicy = _stand_in("azureml.train.hyperdrive.TruncationSelectionPolicy")
