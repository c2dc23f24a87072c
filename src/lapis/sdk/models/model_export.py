"""Model.export_onnx: a run in the environment of the model's own TensorFlow makes an ONNX file of it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from lapis.client.fetching import fetch
from lapis.domain.log_names import STD_LOG
from lapis.errors import ActivityFailedException, UserErrorException

if TYPE_CHECKING:
    from lapis.sdk.models.model import Model
    from lapis.sdk.runs.script_run import ScriptRun

EXPERIMENT = "export-onnx"
_OUTPUT = "outputs/model.onnx"  # as lapis.scoring.export leaves it
_SCRIPT = "import sys\nfrom lapis.scoring.export import main\nsys.exit(main(*sys.argv[1:]))\n"
_SAMPLE = "sample.json"
_KERAS_FILES = (".h5", ".hdf5", ".keras")
_FRAMEWORKS = ("TensorFlow", "TfKeras")


def export(
    model: Model,
    path: str | os.PathLike[str] | None,
    model_name: str | None,
    sample_input: Any,
    overwrite: bool,
    show_output: bool,
) -> str | Model:
    target = None if path is None and model_name is not None else _target(model, path, overwrite)
    if model.model_framework == "Onnx":
        return _as_it_is(model, target, model_name)
    if model.model_framework not in _FRAMEWORKS:
        raise UserErrorException(
            f"Model {model.id} has model_framework {model.model_framework!r}, and what can become ONNX is TensorFlow "
            "and TfKeras: a SavedModel, or a Keras file. Register it with its model_framework."
        )
    _check_files(model)
    run = _submit(model, sample_input)
    try:
        run.wait_for_completion(show_output=show_output)
    except ActivityFailedException as error:
        raise UserErrorException(f"Model {model.id} could not be exported: {_why(run, error)}") from None
    if target is not None:
        run.download_file(_OUTPUT, target)
    if model_name is None:
        return str(target)
    return run.register_model(
        model_name=model_name,
        model_path=_OUTPUT,
        model_framework="Onnx",
        description=f"Converted from {model.id}.",
        properties={"converted_from": model.id},
    )


def _target(model: Model, path: str | os.PathLike[str] | None, overwrite: bool) -> str:
    target = os.fspath(path) if path is not None else f"{model.name}.onnx"
    if os.path.isdir(target):
        target = os.path.join(target, f"{model.name}.onnx")
    if os.path.exists(target) and not overwrite:
        raise UserErrorException(f"'{target}' is there already. Pass overwrite=True to write over it, or another path.")
    folder = os.path.dirname(os.path.abspath(target))
    if not os.path.isdir(folder):
        raise UserErrorException(f"There is no folder '{folder}' to write '{os.path.basename(target)}' to.")
    return target


def _as_it_is(model: Model, target: str | None, model_name: str | None) -> str | Model:
    """An ONNX model is downloaded, no more."""
    files = [file for file in model._view["files"] if file["path"].lower().endswith(".onnx")]
    if len(files) != 1 or model_name is not None:
        why = "is an ONNX model already" if model_name is not None else f"has {len(files)} .onnx files, not one"
        raise UserErrorException(f"Model {model.id} {why}: model.download() fetches it as it is.")
    assert target is not None
    fetch(model.workspace._client, model._address_of(files[0]), target, files[0]["hash"], f"Model {model.id}")
    return target


def _check_files(model: Model) -> None:
    paths = [str(file["path"]) for file in model._view["files"]]
    saved = any(path.rsplit("/", 1)[-1] in ("saved_model.pb", "saved_model.pbtxt") for path in paths)
    if not saved and sum(path.lower().endswith(_KERAS_FILES) for path in paths) != 1:
        raise UserErrorException(
            f"Model {model.id} cannot become ONNX: it is neither a SavedModel (a folder with saved_model.pb) nor one "
            f"Keras file ({', '.join(_KERAS_FILES)}). It has {', '.join(paths[:10])}."
        )


def _submit(model: Model, sample_input: Any) -> ScriptRun:
    import tempfile

    from lapis.sdk.config.script_run_config import ScriptRunConfig
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.runs.experiment import Experiment

    plan = model.workspace._client.call("GET", f"{model._path}/no_code")
    definition = plan["definition"]
    definition["name"] = EXPERIMENT
    definition["python"]["condaDependencies"]["dependencies"][-1]["pip"].append("onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        _write(folder, "export.py", _SCRIPT)
        arguments = [model.id]
        if sample_input is not None:
            _write(folder, _SAMPLE, _sample_text(sample_input))
            arguments.append(_SAMPLE)
        environment = Environment._from_dict(definition)
        config = ScriptRunConfig(folder, script="export.py", arguments=arguments, environment=environment)
        run = Experiment(model.workspace, EXPERIMENT).submit(config, tags={"model": model.id})
    return run


def _sample_text(sample: Any) -> str:
    """A request body: text, the path of a file, or the rows themselves."""
    import json

    if isinstance(sample, os.PathLike) or (isinstance(sample, str) and os.path.isfile(sample)):
        with open(sample) as file:
            return file.read()
    if isinstance(sample, str):
        return sample
    rows = sample.tolist() if hasattr(sample, "tolist") else sample
    return json.dumps(rows if isinstance(rows, dict) else {"data": rows})


def _why(run: ScriptRun, error: ActivityFailedException) -> str:
    """The last line of the run's log, where the converter says its reason."""
    text = run._text_of(STD_LOG) or ""
    said = [line for line in text.splitlines() if line.strip() and not re.match(r"Lapis:|\d{4}-\d\d-\d\d", line)]
    return f"{said[-1].rstrip('.')}. Its run is {run.id}." if said else f"{error.message} Its run is {run.id}."


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)
