"""Runs, shown in a notebook."""

from azureml.widgets.parallel_run_step_details import ParallelRunStepDetails as ParallelRunStepDetails
from azureml.widgets.run_details import RunDetails as RunDetails
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
