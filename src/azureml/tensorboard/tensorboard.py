"""TensorBoard over the logs of runs."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

Tensorboard = _stand_in("azureml.tensorboard.Tensorboard")
