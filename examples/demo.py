"""What `make demo` runs, the whole story: data, a tracked training run, a registered model, a service, predictions.

It uses a home of its own, `.lapis` in this repository, unless LAPIS_HOME says otherwise.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zipfile
from ast import literal_eval
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OWN_HOME = "LAPIS_HOME" not in os.environ
os.environ.setdefault("LAPIS_HOME", str(ROOT / ".lapis"))

from azureml.core import Dataset, Environment, Experiment, Model, ScriptRunConfig, Workspace  # noqa: E402
from azureml.core.conda_dependencies import CondaDependencies  # noqa: E402
from azureml.data.datapath import DataPath  # noqa: E402
from azureml.exceptions import AzureMLException, ServiceException  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
SIDE = 28  # pixels
TENSORFLOW = "2.21"
SERVICE = "digits"


def main() -> int:
    try:
        show()
    except KeyboardInterrupt:  # the run goes on, which was said
        return 130
    except (AzureMLException, ServiceException) as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


def show() -> None:
    began = time.perf_counter()
    heading("1. Real handwritten digits become a dataset")
    ws = Workspace.from_config()
    print(f"The server of {home()} answered after {time.perf_counter() - began:.1f} s.")
    target = DataPath(ws.get_default_datastore(), "digits")
    data = Dataset.File.upload_directory(str(DIGITS / "data"), target, overwrite=True, show_progress=False)
    data = data.register(ws, "digits", create_new_version=True)
    print(f"Dataset '{data.name}', version {data.version}: {', '.join(data.to_path())}")

    heading("2. A training script, written for Azure ML, runs with TensorFlow on this machine")
    if not os.path.isdir(os.path.join(os.environ["LAPIS_HOME"], "environments")):
        print("The first time TensorFlow is downloaded and installed, which takes a minute.")
    run = Experiment(ws, "demo").submit(
        ScriptRunConfig(
            DIGITS,
            script="train.py",
            arguments=["--data", data.as_named_input("digits").as_mount()],
            environment=tensorflow(),
        ),
        tags={"from": "make demo"},
    )
    details = run.wait_for_completion(show_output=True)

    heading("3. What it logged and left behind")
    show_metrics(run.get_metrics())
    for stage in details["stages"]:
        print(f"  {stage['state']:<11} {stage['seconds']:6.2f} s  {stage['reason']}")

    heading("4. Its model is registered, and deployed without a line of code")
    model = run.register_model(
        "digits", "outputs/model", model_framework=Model.Framework.TENSORFLOW, model_framework_version=TENSORFLOW
    )
    print(f"Model {model.id}, from run {model.run_id}")
    service = Model.deploy(ws, SERVICE, [model], overwrite=True)
    service.wait_for_deployment(show_output=True)

    heading("5. The service reads digits that it has never seen")
    show_predictions(service)
    heading("What to look at next")
    show_next(run, service)
    print(f"\nAll of this took {time.perf_counter() - began:.0f} s.")


def tensorflow() -> Environment:
    environment = Environment("digits")
    packages = [f"tensorflow=={TENSORFLOW}.*", "numpy"]
    environment.python.conda_dependencies = CondaDependencies.create(python_version="3.11", pip_packages=packages)
    environment.environment_variables = {"TF_CPP_MIN_LOG_LEVEL": "2"}  # no greetings in the log
    return environment


def show_metrics(metrics: dict[str, Any]) -> None:
    print("  epoch   loss  accuracy")
    for epoch, (loss, accuracy) in enumerate(zip(metrics["loss"], metrics["accuracy"], strict=True), start=1):
        print(f"  {epoch:5d}  {loss:5.3f}  {accuracy:8.3f}  {'#' * round(accuracy * 40)}")


def show_predictions(service: Any) -> None:
    pictures, digits = array("x_test"), array("y_test")
    size = SIDE * SIDE
    rows = [pictures[at : at + size] for at in range(0, len(pictures), size)]
    body = json.dumps({"instances": [pixels_of(row) for row in rows]})
    began = time.perf_counter()
    answers = service.run(body)["predictions"]
    seconds = time.perf_counter() - began
    said = [max(range(10), key=answer.__getitem__) for answer in answers]
    right = sum(a == b for a, b in zip(said, digits, strict=True))
    print(f"{len(rows)} digits, {len(body) / 1e6:.0f} MB of JSON, are answered in {seconds:.2f} s: {right} are right.")
    least_sure = min(range(len(rows)), key=lambda at: max(answers[at]))
    for shown in ([0, 1, 2], [3, 4, least_sure]):
        print()
        for line in zip(*(drawn(rows[at]) for at in shown), strict=True):
            print("   ".join(line).rstrip())
        captions = [f"reads {said[at]}, {max(answers[at]):.0%} sure" for at in shown]
        captions = [
            caption + ("" if said[at] == digits[at] else f" (in truth {digits[at]})")
            for at, caption in zip(shown, captions, strict=True)
        ]
        print("   ".join(caption.ljust(24) for caption in captions).rstrip())
    print("\nThe last one is the one that it is least sure of.")


def array(name: str) -> bytes:
    """One array of digits.npz, as bytes: the interpreter of this demo need not have NumPy."""
    with zipfile.ZipFile(DIGITS / "data" / "digits.npz") as archive:
        stored = archive.read(f"{name}.npy")
    length = int.from_bytes(stored[8:10], "little")
    assert literal_eval(stored[10 : 10 + length].decode())["descr"] == "|u1"
    return stored[10 + length :]


def pixels_of(row: bytes) -> list[Any]:
    values = [round(value / 255, 3) for value in row]
    return [[[value] for value in values[at : at + SIDE]] for at in range(0, len(values), SIDE)]


def drawn(row: bytes) -> list[str]:
    """The middle of a picture, two rows of pixels in each line of text."""
    lit = [[row[y * SIDE + x] > 90 for x in range(2, SIDE - 2)] for y in range(4, SIDE - 4)]
    blocks = " ▀▄█" if "utf" in (sys.stdout.encoding or "").lower() else " '.#"
    return [
        "".join(blocks[upper + 2 * lower] for upper, lower in zip(lit[y], lit[y + 1], strict=True))
        for y in range(0, len(lit), 2)
    ]


def show_next(run: Any, service: Any) -> None:
    setting = f"LAPIS_HOME={home()} " if OWN_HOME else ""
    lapis = os.path.relpath(Path(sys.executable).parent / "lapis")
    digits = os.path.relpath(DIGITS)
    address = service.scoring_uri[: -len("/score")]
    print(
        f"  the service, which goes on running, about its inputs and outputs:\n    curl {address}/v2/models/{SERVICE}"
    )
    for what, command in (
        ("the run in a browser, with its curves, log and files", f"open {run.id}"),
        ("all about the run, on one page", f"run show {run.id}"),
        ("the trained model, in a folder here", f"run download {run.id} --prefix outputs/"),
        ("the same model as an ONNX file, for any other place", "model export digits -o digits.onnx"),
        ("all runs so far", "run list"),
        ("what the service says, and how quickly it answers", f"service show {SERVICE}"),
        ("remove the service", f"service delete {SERVICE}"),
        ("stop the server", "stop"),
    ):
        print(f"  {what}:\n    {setting}{lapis} {command}")
    print(f"  the training script: {digits}/train.py; the same as a notebook: examples/digits.ipynb")
    print("  your own script: the ten lines in README.md")


def home() -> str:
    folder = os.environ["LAPIS_HOME"]
    near = os.path.relpath(folder)
    return folder if near.startswith("..") else near


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)
    if not sys.stdout.isatty():
        print("-" * len(text), flush=True)


if __name__ == "__main__":
    sys.exit(main())
