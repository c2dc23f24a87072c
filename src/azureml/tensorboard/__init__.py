"""TensorBoard over the logs of runs."""

from azureml.tensorboard.tensorboard import Tensorboard as Tensorboard
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
