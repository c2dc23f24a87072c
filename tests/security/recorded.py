"""What a real client asks for: every request of a session with all kinds of things in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from azureml.core import Dataset, Datastore, Environment, Experiment, Model, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.model import InferenceConfig
from azureml.core.webservice import AciWebservice
from azureml.train.hyperdrive import GridParameterSampling, HyperDriveConfig, PrimaryMetricGoal, choice
from lapis.client.http_client import Client


class Asked(NamedTuple):
    """One request: `body` is bytes as they were sent, whether JSON or frames."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    body: bytes


@contextmanager
def recording() -> Iterator[list[Asked]]:
    """All that clients of this process ask for in the block, as it is sent."""
    kept: list[Asked] = []
    once = Client._once

    def noted(self: Client, wire: Any, method: str, target: str, *more: Any) -> Any:
        parts = urlsplit(target)
        data = more[2]
        body = b"".join(data[0]()) if isinstance(data, tuple) else bytes(data or b"")
        kept.append(Asked(method, parts.path, tuple(parse_qsl(parts.query)), body))
        return once(self, wire, method, target, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "_once", noted)
        yield kept


def session(workspace: Workspace, folder: Path) -> None:
    """A day with Lapis, quickly: data, runs, a search, a model, an image of a service; all that it made stays."""
    (folder / "train.py").write_text("from azureml.core import Run\nRun.get_context().log('accuracy', 0.5)\n")
    (folder / "score.py").write_text("def init(): pass\n\ndef run(data): return data\n")
    (folder / "table.csv").write_text("a,b\n1,2\n")
    _data(workspace, folder)
    _runs(workspace, folder)
    model = Model.register(workspace, str(folder / "table.csv"), "model", tags={"a": "b"}, description="d")
    model.add_tags({"c": "d"})
    cluster = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", min_nodes=0, max_nodes=2)
    ComputeTarget.create(workspace, "cluster", cluster).update(max_nodes=1)
    Environment("mine").register(workspace)
    inference = InferenceConfig("score.py", source_directory=str(folder))
    service = Model.deploy(workspace, "service", [model], inference, AciWebservice.deploy_configuration(1, 1))
    service.wait_for_deployment()
    service.update(tags={"e": "f"}, auth_enabled=True)
    service.get_keys()
    service.delete()


def _data(workspace: Workspace, folder: Path) -> None:
    store = Datastore.register_azure_blob_container(
        workspace, "blobs", "container", "account", account_key="a2V5", skip_validation=True
    )
    store.unregister()
    default = workspace.get_default_datastore()
    default.upload_files([str(folder / "table.csv")], target_path="t", show_progress=False)
    table = Dataset.Tabular.from_delimited_files((default, "t/table.csv"))
    table.register(workspace, "table", tags={"g": "h"})
    Dataset.get_by_name(workspace, "table").to_pandas_dataframe()
    workspace.set_default_datastore(default.name)


def _runs(workspace: Workspace, folder: Path) -> None:
    experiment = Experiment(workspace, "session")
    with experiment.start_logging(snapshot_directory=str(folder)) as run:
        run.log("accuracy", 0.5)
        run.log_list("list", [1, 2])
        run.tag("i", "j")
        run.add_properties({"k": "l"})
        run.upload_file("outputs/table.csv", str(folder / "table.csv"))
        run.child_run("child").complete()
        run.flush()
    run.get_metrics()
    run.get_details()
    config = ScriptRunConfig(str(folder), "train.py", arguments=["--lr", 0.1])
    config.run_config.environment_variables = {"A": "B"}
    submitted = experiment.submit(config, tags={"m": "n"})
    submitted.wait_for_completion()
    submitted.remove_tags(["m"])
    search = HyperDriveConfig(
        GridParameterSampling({"--lr": choice(0.1, 0.2)}), "accuracy", PrimaryMetricGoal.MAXIMIZE, 2, 1,
        run_config=ScriptRunConfig(str(folder), "train.py"),
    )  # fmt: skip
    sweep = experiment.submit(search)
    sweep.wait_for_completion()
    list(experiment.get_runs())
    os.remove(folder / "train.py")
