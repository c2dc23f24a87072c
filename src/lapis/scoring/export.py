"""What the run of `Model.export_onnx` does: fetches the model, converts it, compares, and leaves outputs/model.onnx.

It runs in an environment with the model's TensorFlow, tf2onnx and ONNX Runtime.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

OUTPUT = "outputs/model.onnx"
REPORT = "outputs/report.json"


def main(model_id: str, sample: str = "") -> int:
    from lapis.sdk.models.model import Model
    from lapis.sdk.runs.run import Run

    run = Run.get_context()
    workspace: Any = run.experiment.workspace
    os.makedirs("outputs", exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="lapis-export-")
    try:
        print(f"Fetching model {model_id}", flush=True)
        model = Model(workspace, id=model_id).download(scratch)
        answers = os.path.join(scratch, "answers.npz")
        print("Converting it to ONNX", flush=True)
        for step in (
            ["make", model, OUTPUT, answers, *([sample] if sample else [])],
            ["compare", OUTPUT, answers, REPORT],
        ):
            code = subprocess.call([sys.executable, "-m", "lapis.scoring.convert", *step])
            if code:
                return code
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    with open(REPORT) as file:
        report = json.load(file)
    run.log("largest_difference", report["largest_difference"])
    print(
        f"The largest difference to the original is {report['largest_difference']:.2g}, in output '{report['output']}' "
        f"over {report['rows']} rows of {report['examples']}.",
        flush=True,
    )
    return 0
