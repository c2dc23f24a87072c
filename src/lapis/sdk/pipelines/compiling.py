"""From steps to one value that the server runs: everything is checked, and the code is sent, before it is submitted."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar

from lapis.client.snapshot_sending import send_snapshot
from lapis.domain.data import STORE
from lapis.domain.job import DatasetInput, InDatastore, Output, Reference, Registration
from lapis.domain.pipeline import WRITER, FromStep, PipelinePlan, StepPlan, TrainedOutput, WholeOutput
from lapis.errors import AzureMLException, InvalidPipeline, NotThereYet
from lapis.sdk.config.resume import resumed_run
from lapis.sdk.config.script_run_config import get_run_config_from_script_run
from lapis.sdk.data import run_data
from lapis.sdk.data.config_data import named_in
from lapis.sdk.data.data_reference import DataPath
from lapis.sdk.data.output_dataset_config import OutputDatasetConfig
from lapis.sdk.pipelines import wiring
from lapis.sdk.pipelines.bindings import OutputPortBinding
from lapis.sdk.pipelines.parameters import VARIABLE
from lapis.sdk.runs import submission
from lapis.sdk.runs.run_definition import run_definition

if TYPE_CHECKING:
    from lapis.sdk.data.abstract_datastore import AbstractDatastore
    from lapis.sdk.pipelines.pipeline import Pipeline
    from lapis.sdk.pipelines.steps import PipelineStep

T = TypeVar("T")


class Compiler:
    """One compilation: what several steps share is asked for and sent once."""

    def __init__(self, pipeline: Pipeline, experiment: str, values: Mapping[str, Any]) -> None:
        self.workspace, self.values = pipeline.workspace, values
        self.source_directory = pipeline._default_source_directory or "."
        self._experiment, self._pipeline = experiment, pipeline
        self._steps = pipeline._steps
        self._number = {id(step): number for number, step in enumerate(self._steps)}
        self._known: dict[Any, Any] = {}

    def whole(self, continue_on_step_failure: bool, regenerate_outputs: bool) -> PipelinePlan:
        outputs = {}
        for number, step in enumerate(self._steps):
            for output in step._written:
                name = getattr(output, "pipeline_output_name", None)
                if name:
                    outputs[name] = WholeOutput(number, output._output_name)
        return PipelinePlan(
            steps=tuple(self.step(each) for each in self._steps),
            outputs=outputs,
            parameters={name: _shown(value) for name, value in self.values.items()},
            continue_on_step_failure=bool(continue_on_step_failure),
            regenerate_outputs=bool(regenerate_outputs),
        )

    def step(self, step: PipelineStep) -> StepPlan:
        try:
            return self._step(step)
        except AzureMLException as error:
            if error.message.startswith(f"Step '{step.name}'"):
                raise
            raise _like(error, f"Step '{step.name}': {error.message}") from error

    def word(self, step: PipelineStep, value: Any) -> Any:
        """An argument of a step, as a run configuration takes it."""
        return wiring.as_word(value, step._joined(), step._written, self.values)

    def _step(self, step: PipelineStep) -> StepPlan:
        config = step._script_config(self)
        run_config = get_run_config_from_script_run(config)
        if hasattr(run_config.environment, "get_environment"):  # named by reference
            run_config.environment = run_config.environment.get_environment(self.workspace)
        folder = submission.checked_folder(config.source_directory)
        job = submission.checked_job(self.workspace, run_config, folder)
        words = [*(run_config.arguments or []), *(run_config.command if isinstance(run_config.command, list) else [])]
        given = [each for each in words if run_data.is_data(each) and wiring.joined(each) is None]
        given += [*step._from_outside(self.values), *named_in(run_config, self.workspace)]
        given += [output for output in step._written if isinstance(output, OutputDatasetConfig)]
        data = run_data.collect(given, run_config.data_references, self.workspace, WRITER)
        written = tuple(self._output(each) for each in step._written if isinstance(each, OutputPortBinding))
        read = tuple(self._input(step, each) for each in step._joined())
        job = replace(
            job,
            arguments=run_data.with_names(job.arguments, data),
            environment_variables={**job.environment_variables, **self._variables(step)},
            inputs=data.inputs,
            outputs=(*data.outputs, *written),
            url_mirrors=run_data.checked_mirrors(),
            mount=run_data.checked_mount(),
            resumes=resumed_run(words),
        )
        submission.check_tables(replace(job, inputs=(*job.inputs, *(each.input for each in read))))
        target, kind = self._once(("target", _name(run_config.target)), lambda: submission.checked_target(
            self.workspace, run_config.target
        ))  # fmt: skip
        sent = self._once(("code", folder), lambda: send_snapshot(self.workspace, folder))
        ids = {each.name: each.dataset_id for each in data.inputs if isinstance(each, DatasetInput)}
        return StepPlan(
            name=step.name,
            job=job,
            snapshot_id=sent.id,
            target=target,
            type=step.step_type,
            inputs=read,
            search=step._search(),
            trained=tuple(map(self._trained, step._trained_outputs())),
            after=tuple(sorted(self._number[id(each)] for each in step.run_after_steps)),
            allow_reuse=getattr(step, "_allow_reuse", True),
            version=getattr(step, "_version", None),
            definition=run_definition(run_config, target, self._experiment, given, ids),
            properties={
                **self._once(("git", folder), lambda: submission.git_facts(folder)),
                "ContentSnapshotId": sent.id,
                "ComputeTargetType": kind,
                "_azureml.ComputeTargetType": kind,
                "ProcessInfoFile": "azureml-logs/process_info.json",
                "ProcessStatusFile": "azureml-logs/process_status.json",
            },
            uses=tuple(data.uses),
            notices=job.notices,
        )

    def _variables(self, step: PipelineStep) -> dict[str, str]:
        """The parameters that the step uses, where SDK v1 has them."""
        used = {each.name: self.values[each.name] for each in step._parameters()}
        found = {f"{VARIABLE}{name}": str(value) for name, value in used.items() if isinstance(value, _PLAIN)}
        own = getattr(step, "_variables", None)
        return {**found, **(own(self.values) if own is not None else {})}

    def _output(self, binding: OutputPortBinding) -> Output:
        store, path = self._place_of(binding)
        registration, kept = binding.dataset_registration, binding._dataset_output
        source = {"kind": STORE, "datastore": store.name, "path": path}
        return Output(
            name=binding._output_name,
            mode=binding.bind_mode,
            place=self._folder(store, path),
            definition=_definition(kept, source),
            path_on_compute=binding.path_on_compute,
            overwrite=bool(binding.overwrite),
            glob=getattr(kept, "_glob", None),
            made_by_script=True,
            register=None if registration is None else Registration(registration.name),
        )

    def _trained(self, binding: OutputPortBinding) -> TrainedOutput:
        wanted, (store, path) = binding.training_output, self._place_of(binding)
        assert wanted is not None
        if isinstance(self._folder(store, path), InDatastore):
            raise InvalidPipeline(
                f"Output '{binding.name}' is written by the server, to a datastore that is a folder of its machine: "
                f"'{store.name}' is none."
            )
        return TrainedOutput(binding._output_name, wanted.type, wanted.model_file)

    def _input(self, step: PipelineStep, wanted: wiring.Joined) -> FromStep:
        writer, mode = wanted.origin.step, wiring.checked_mode(step.name, wanted)
        name = wanted.source._output_name if isinstance(wanted.source, OutputPortBinding) else wanted.source.name
        store, path = self._place_of(wanted.source)
        given: DatasetInput | Reference
        if wanted.dataset is None:
            place = self._folder(store, path)
            given = Reference(wanted.name, mode, place, wanted.path_on_compute, wanted.overwrite)
        else:
            source = {"kind": STORE, "datastore": store.name, "path": path}
            given = DatasetInput(
                wanted.name, mode, _definition(wanted.dataset, source), wanted.path_on_compute,
                folders={store.name: self._once(("folder", store.name), store._folder_or_none)},
            )  # fmt: skip
        return FromStep(self._number[id(writer)], name, given)

    def _place_of(self, source: Any) -> tuple[Any, str]:
        """The datastore and the path in it that an output goes to."""
        if isinstance(source, OutputPortBinding):
            return source.datastore or self._default_store(), f"azureml/{WRITER}/{source._output_name}"
        from lapis.domain.data import output_place
        from lapis.sdk.data.datastore import Datastore

        store, template = source.destination or (Datastore(self.workspace, "workspaceblobstore"), None)
        return store, output_place(template, WRITER, source.name)

    def _default_store(self) -> AbstractDatastore:
        chosen: AbstractDatastore = self._pipeline._default_datastore or self._once(
            "store", self.workspace.get_default_datastore
        )
        return chosen

    def _folder(self, store: Any, path: str) -> str | InDatastore:
        root = self._once(("folder", store.name), store._folder_or_none)
        return InDatastore(store.name, path) if root is None else os.path.join(os.path.realpath(root), path)

    def _once(self, key: Any, ask: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = ask()
        found: T = self._known[key]
        return found


_PLAIN = (str, int, float, bool)


def _definition(kept: Any, source: dict[str, Any]) -> dict[str, Any]:
    """Of the dataset that an output is: as it is read, or just its files."""
    if kept is None:
        return {"type": "file", "sources": [source], "steps": []}
    glob = getattr(kept, "_glob", None)
    found: dict[str, Any] = kept._definition({**source, "path": f"{source['path']}/{glob}"} if glob else source)
    return found


def _shown(value: Any) -> str:
    if isinstance(value, DataPath):
        return f"{value.datastore_name}/{value.path_on_datastore or ''}"
    return str(value) if isinstance(value, _PLAIN) else str(getattr(value, "name", None) or type(value).__name__)


def _name(target: Any) -> Any:
    return getattr(target, "name", target)


def _like(error: AzureMLException, message: str) -> AzureMLException:
    """An error of the same class that says more."""
    if isinstance(error, NotThereYet):
        return InvalidPipeline(message)
    return type(error)(message)
