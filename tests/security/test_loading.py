"""Classes 7 to 9: files that run code when they are read."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import Any

import lapis
from azureml.core import Model, Workspace
from tests.security.attack import Site

SOURCES = sorted(Path(lapis.__file__).parent.rglob("*.py"))
LOADERS = {"pickle", "cPickle", "dill", "joblib", "cloudpickle", "marshal", "shelve"}
MAY_LOAD = {"scoring/runtimes/sklearn.py"}  # what a user deploys, in a process that is apart from the server
MAY_EXECUTE = {"sdk/runs/notebook_script.py"}  # the cells of a notebook that was submitted, in its own run


class Hostile:
    """Whoever unpickles this writes the canary."""

    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        return (Path.write_text, (self._canary, "executed"))


def test_class_07_nothing_that_is_downloaded_is_unpickled_by_the_client(site: Site, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    hostile = pickle.dumps(Hostile(canary))
    for name in ("outputs/model.pkl", "outputs/artifact.joblib", "outputs/data.npy", "logs/log.pkl"):
        site.ask("PUT", f"{site.runs}/files/{name}", site.token, hostile)
    site.run.download_files(output_directory=str(tmp_path / "files"))
    site.run.register_model("hostile", model_path="outputs/model.pkl").download(str(tmp_path / "model"))
    site.run.get_details(), site.run.get_metrics(), site.run.get_file_names()
    assert not canary.exists()
    assert (tmp_path / "files" / "outputs" / "model.pkl").read_bytes() == hostile


def test_class_08_no_model_is_loaded_by_the_server(site: Site, workspace: Workspace, tmp_path: Path) -> None:
    canary, path = tmp_path / "canary", tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(Hostile(canary)))
    model = Model.register(workspace, str(path), "hostile", model_framework=Model.Framework.SCIKITLEARN)
    assert [each.name for each in Model.list(workspace)] == ["hostile"]
    assert site.ask("GET", f"{site.api}/models/{model.name}/1/no_code", site.user).status < 500
    assert site.ask("GET", f"{site.api}/models/{model.name}/1/lineage", site.user).status == 200
    assert not canary.exists()


def test_class_08_only_the_worker_behind_a_service_can_unpickle() -> None:
    for source in SOURCES:
        name = str(source.relative_to(Path(lapis.__file__).parent))
        for node in ast.walk(ast.parse(source.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert name in MAY_LOAD or not LOADERS & {module.split(".")[0] for module in modules}, name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert name in MAY_EXECUTE or node.func.id not in ("eval", "exec"), name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in (("yaml", "load"), ("yaml", "unsafe_load")), name


def test_class_09_keras_models_are_loaded_in_safe_mode() -> None:
    """The attack itself, with a real Keras, is in tests/scoring; this one keeps new calls from forgetting it."""
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load_model":
                said = [keyword.arg for keyword in node.keywords]
                assert "safe_mode" in said or None in said, f"{source.name}:{node.lineno}"
