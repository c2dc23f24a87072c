"""Looks for the learning rate and the size of the network that learn best: `python examples/sweep/submit.py`."""

import math
import os

from azureml.core import Experiment, ScriptRunConfig, Workspace
from azureml.train.hyperdrive import (
    HyperDriveConfig,
    MedianStoppingPolicy,
    PrimaryMetricGoal,
    RandomParameterSampling,
    choice,
    loguniform,
)

script = ScriptRunConfig(os.path.dirname(os.path.abspath(__file__)), "train.py", arguments=["--epochs", 30])
space = {"--learning-rate": loguniform(math.log(0.001), math.log(0.5)), "--hidden": choice(2, 4, 8, 16)}
config = HyperDriveConfig(
    run_config=script,
    hyperparameter_sampling=RandomParameterSampling(space),
    policy=MedianStoppingPolicy(delay_evaluation=10),
    primary_metric_name="loss",
    primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
    max_total_runs=12,
    max_concurrent_runs=2,
)
search = Experiment(Workspace.from_config(), "sweep-example").submit(config)
search.wait_for_completion(show_output=True)
best = search.get_best_run_by_primary_metric()
print(f"\nThe best run is {best.id}: {best.tags['hyperparameters']}, loss {min(best.get_metrics()['loss']):.4f}")
