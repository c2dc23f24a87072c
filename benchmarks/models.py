"""From a run's output to a service: registering a large model, and deploying until the first answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from home import Home
from measure import Asked, Figure, Options, Reading, alone
from model_servers import MAKE_MODEL

from azureml.core import Experiment, Model, ScriptRunConfig
from azureml.core.model import InferenceConfig

ROUNDS = 7
GIGABYTE = 1 << 30
LARGE = f"import os\nwith open('outputs/model.bin', 'wb') as file:\n    os.truncate(file.fileno(), {GIGABYTE})\n"
SCORE = "def init(): pass\ndef run(data): return data\n"


def measure(options: Options) -> list[Figure]:
    with Home() as home:
        experiment = home.experiment()
        figures = [_registered(home, experiment), *_deployed(home, experiment)]
    return figures


def _registered(home: Home, experiment: Experiment) -> Figure:
    run = experiment.submit(ScriptRunConfig(home.source(LARGE), "train.py"))
    run.wait_for_completion()
    taken = []
    for _ in range(3 * ROUNDS):
        began = time.perf_counter()
        model = run.register_model("large", "outputs/model.bin")
        taken.append(time.perf_counter() - began)
    assert model.version == 3 * ROUNDS
    return Figure("register a run's output of 1 GB as a model", "s", [Reading("Lapis", taken)], Asked(most=0.05))


def _deployed(home: Home, experiment: Experiment) -> list[Figure]:
    """Whatever has to be built is built by the first one, which does not count."""
    workspace, folder = experiment.workspace, Path(home.source(""))
    (folder / "score.py").write_text(SCORE)
    subprocess.run([sys.executable, "-c", MAKE_MODEL, str(home.work / "mlp.onnx")], check=True)
    model = Model.register(workspace, str(home.work / "mlp.onnx"), "mlp", model_framework=Model.Framework.ONNX)
    row = '{"data": [' + ", ".join(["[" + ", ".join(["0.5"] * 784) + "]"]) + "]}"
    kinds = {
        "no code": lambda name: Model.deploy(workspace, name, [model]),
        "score.py": lambda name: Model.deploy(
            workspace, name, [], InferenceConfig("score.py", source_directory=str(folder))
        ),
    }
    figures = []
    for kind, deploy in kinds.items():
        taken = []
        for number in range(ROUNDS + 1):
            began = time.perf_counter()
            service = deploy(f"bench-{number}")
            service.wait_for_deployment()
            assert service.run(row)
            taken.append(time.perf_counter() - began)
            service.delete()
        figures.append(
            Figure(f"deploy until the first answer, {kind}", "s", [Reading("Lapis", taken[1:])], Asked(most=3))
        )
    return figures


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    alone(measure)
