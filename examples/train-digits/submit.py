"""The first ten lines of an Azure ML notebook: they run here with nothing set up."""

import os

from azureml.core import Experiment, ScriptRunConfig, Workspace

ws = Workspace.from_config()
experiment = Experiment(ws, "train-digits")
here = os.path.dirname(os.path.abspath(__file__))
config = ScriptRunConfig(source_directory=here, script="train.py", arguments=["--epochs", 10, "--rate", 0.1])
run = experiment.submit(config)
run.wait_for_completion(show_output=True)

print(run.get_metrics(name="accuracy")["accuracy"][-1])
run.download_file("outputs/model.json", output_file_path="model.json")
