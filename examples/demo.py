"""What `make demo` runs: submits a small training script, follows its log, and shows what is left of the run.

It uses a home of its own, `.lapis` in this repository, unless LAPIS_HOME says otherwise.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OWN_HOME = "LAPIS_HOME" not in os.environ
os.environ.setdefault("LAPIS_HOME", str(ROOT / ".lapis"))

from azureml.core import Experiment, ScriptRunConfig, Workspace  # noqa: E402
from azureml.exceptions import AzureMLException, ServiceException  # noqa: E402


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
    heading("A training run, written for Azure ML, on this machine")
    began = time.perf_counter()
    ws = Workspace.from_config()
    print(f"The server of {home()} answered after {time.perf_counter() - began:.1f} s.")

    experiment = Experiment(ws, "demo")
    config = ScriptRunConfig(ROOT / "examples" / "demo", script="train.py", arguments=["--rate", 0.05])
    run = experiment.submit(config, tags={"from": "make demo"})
    details = run.wait_for_completion(show_output=True)

    heading("Metrics, as run.get_metrics() gives them")
    show_metrics(run.get_metrics())
    heading("Files, as run.get_file_names() gives them")
    for name in run.get_file_names():
        print(f"  {name}")
    heading("Where the time went")
    for stage in details["stages"]:
        print(f"  {stage['state']:<11} {stage['seconds']:6.2f} s  {stage['reason']}")
    heading("Look at it in a browser")
    print(f"  {run.get_portal_url()}")
    heading("What to try next")
    show_next(run.id)


def show_metrics(metrics: dict[str, Any]) -> None:
    print("  epoch   loss  accuracy")
    for epoch, (loss, accuracy) in enumerate(zip(metrics["loss"], metrics["accuracy"], strict=True), start=1):
        print(f"  {epoch:5d}  {loss:5.3f}  {accuracy:8.3f}  {'#' * round(accuracy * 40)}")


def show_next(run_id: str) -> None:
    setting = f"LAPIS_HOME={home()} " if OWN_HOME else ""
    lapis = os.path.relpath(Path(sys.executable).parent / "lapis")
    demo = os.path.relpath(ROOT / "examples" / "demo")
    for what, command in (
        ("all about the run, on one page", f"run show {run_id}"),
        ("the trained model, in a folder here", f"run download {run_id} --prefix outputs/"),
        (
            "another run, with a learning rate that is too high",
            f"run submit --follow -e demo -s {demo} train.py --rate 0.2",
        ),
        ("all runs so far", "run list"),
        ("stop the server (it also leaves by itself when idle)", "stop"),
    ):
        print(f"  {what}:\n    {setting}{lapis} {command}")
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
