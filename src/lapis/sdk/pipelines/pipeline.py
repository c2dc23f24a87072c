"""A pipeline: steps and what flows between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, NoReturn
from uuid import uuid4

from lapis.domain.pipeline import circle_in, in_a_circle
from lapis.domain.pipeline_moves import node_id
from lapis.domain.run import PIPELINE_RUN, check_labels, check_run_id, check_text
from lapis.errors import AzureMLException, InvalidPipeline, NotThereYet, UserErrorException
from lapis.sdk.pipelines.parameters import PipelineParameter, assigned
from lapis.sdk.pipelines.steps import PipelineStep, flattened
from lapis.sdk.runs import submission

if TYPE_CHECKING:
    from lapis.sdk.pipelines.graph import Graph
    from lapis.sdk.pipelines.pipeline_run import PipelineRun
    from lapis.sdk.workspace.workspace import Workspace

_SUBMITTED_WITH = {
    "pipeline_parameters", "continue_on_step_failure", "regenerate_outputs", "parent_run_id", "credential_passthrough",
    "run_id", "display_name", "description", "properties",
}  # fmt: skip


class Pipeline:
    """`steps` is a step, a list of steps, or lists of lists and StepSequences. Steps whose outputs these read belong to
    it too, unless `resolve_closure` is False."""

    def __init__(
        self,
        workspace: Workspace,
        steps: Any,
        description: str | None = None,
        default_datastore: Any = None,
        default_source_directory: str | None = None,
        resolve_closure: bool = True,
        **kwargs: Any,
    ) -> None:
        if not hasattr(workspace, "subscription_id"):
            raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")
        self._workspace, self._description = workspace, check_text("description", description)
        if isinstance(default_datastore, str):
            from lapis.sdk.data.datastore import Datastore

            default_datastore = Datastore.get(workspace, default_datastore)
        self._default_datastore, self._default_source_directory = default_datastore, default_source_directory
        self._name: str | None = None
        self._steps = _in_order(_found([steps] if isinstance(steps, PipelineStep) else steps, bool(resolve_closure)))
        self._check_outputs()

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def description(self) -> str | None:
        return self._description

    @property
    def steps(self) -> list[PipelineStep]:
        return list(self._steps)

    @property
    def graph(self) -> Graph:
        """The pipeline as nodes and edges."""
        from lapis.sdk.pipelines.graph import graph_of

        return graph_of(self)

    def validate(self) -> list[str]:
        """What is wrong with it; an empty list if nothing is. Nothing is started, but code is sent to the server."""
        from lapis.sdk.pipelines.compiling import Compiler

        problems = []
        try:
            self._steps = _in_order(self._steps)
            values = assigned(self._parameters(), self._defaults())
            compiler = Compiler(self, "validation", values)
        except AzureMLException as error:
            return [error.message]
        for number, step in enumerate(self._steps):
            try:
                compiler.step(step)
                print(f"Step {step.name} is ready to be created [{node_id(step.name, number)}]")
            except AzureMLException as error:
                problems.append(error.message)
                print(f"Step {step.name} is not ready: {error.message}")
        return problems

    def submit(
        self,
        experiment_name: str,
        pipeline_parameters: Mapping[str, Any] | None = None,
        continue_on_step_failure: bool = False,
        regenerate_outputs: bool = False,
        parent_run_id: str | None = None,
        credential_passthrough: bool | None = None,
        **kwargs: Any,
    ) -> PipelineRun:
        """Run it, and return at once with the run."""
        from lapis.sdk.runs.experiment import Experiment

        return Experiment(self._workspace, experiment_name).submit(
            self,
            pipeline_parameters=pipeline_parameters,
            continue_on_step_failure=continue_on_step_failure,
            regenerate_outputs=regenerate_outputs,
            parent_run_id=parent_run_id,
            **kwargs,
        )

    def publish(
        self, name: str | None = None, description: str | None = None, version: str | None = None,
        continue_on_step_failure: bool | None = None,
    ) -> NoReturn:  # fmt: skip
        raise NotThereYet("Pipeline.publish", "pipeline.submit() runs it now.")

    def service_endpoint(self) -> str:
        raise NotThereYet("Pipeline.service_endpoint")

    @staticmethod
    def load_yaml(workspace: Workspace, filename: str, _workflow_provider: Any = None) -> Pipeline:
        raise NotThereYet("Pipeline.load_yaml")

    def _set_experiment_name(self, name: str) -> None:
        self._name = name

    def _parameters(self) -> list[PipelineParameter]:
        return [parameter for step in self._steps for parameter in step._parameters()]

    def _defaults(self) -> dict[str, Any]:
        """For validate(): a parameter without a default may be given one later."""
        return {each.name: "" for each in self._parameters() if each.default_value is None}

    def _body(self, experiment: Any, tags: Any, parent: Any, more: Mapping[str, Any]) -> dict[str, Any]:
        """What the server gets to know of one submission."""
        from lapis.sdk.pipelines.compiling import Compiler

        unknown = sorted(set(more) - _SUBMITTED_WITH)
        if unknown:
            known = ", ".join(sorted(_SUBMITTED_WITH))
            raise UserErrorException(
                f"submit() of a pipeline does not know {', '.join(unknown)}. Known: tags, {known}."
            )
        if experiment.workspace != self._workspace:
            raise UserErrorException(
                f"The pipeline is of workspace '{self._workspace.name}', and the experiment of "
                f"'{experiment.workspace.name}'."
            )
        self._steps = _in_order(self._steps)  # run_after() may have been called since
        values = assigned(self._parameters(), more.get("pipeline_parameters"))
        going_on, anew = more.get("continue_on_step_failure"), more.get("regenerate_outputs")
        plan = Compiler(self, experiment.name, values).whole(bool(going_on), bool(anew))
        for number, made in enumerate(plan.steps):
            reuse = made.allow_reuse and not anew
            said = "is eligible to reuse a previous run's output" if reuse else "will run and generate new outputs"
            print(
                f"Created step {made.name} [{node_id(made.name, number)}][{made.snapshot_id[:8]}], (This step {said})"
            )
        return {
            "experiment": experiment.name,
            "run_id": check_run_id(more.get("run_id") or str(uuid4())),
            "nonce": uuid4().hex,
            "type": PIPELINE_RUN,
            "parent_id": parent._run_id if parent is not None else more.get("parent_run_id"),
            "display_name": check_text("display_name", more.get("display_name")),
            "description": check_text("description", more.get("description") or self._description),
            "tags": check_labels("tags", tags or {}),
            "properties": {
                "azureml.runsource": PIPELINE_RUN,
                "runSource": "SDK",
                "runType": "SDK",
                "azureml.parameters": json.dumps(plan.parameters),
                "azureml.continue_on_step_failure": str(bool(going_on)),
                "azureml.pipelineComponent": "pipelinerun",
                **check_labels("properties", more.get("properties") or {}),
            },
            "pipeline": plan.to_json(),
            "accepted": f"Accepted with {len(plan.steps)} steps",
            "created_by": submission.submitter_name(),
        }

    def _check_outputs(self) -> None:
        """Every input has a writer, every output one, and every output of the whole a name of its own."""
        writers: dict[int, PipelineStep] = {}
        names: dict[str, str] = {}
        for step in self._steps:
            for output in step._written:
                other = writers.setdefault(id(output._origin), step)
                if other is not step:
                    raise InvalidPipeline(
                        f"Two steps write '{output.name}': '{other.name}' and '{step.name}'. Give each an output of "
                        "its own."
                    )
                name = getattr(output, "pipeline_output_name", None)
                if name and names.setdefault(name, step.name) is not step.name:
                    raise InvalidPipeline(f"Duplicate pipeline output with name {name}")
        for step in self._steps:
            for wanted in step._joined():
                if id(wanted.origin) not in writers:
                    raise InvalidPipeline(
                        f"Input {wanted.name} on step {step.name} is not connected to any previous step."
                    )

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(step.name for step in self._steps)})"


def _found(given: Any, closure: bool) -> list[PipelineStep]:
    """The steps that were given, and with `closure` those that they wait for."""
    if not isinstance(given, (list, tuple)) and not hasattr(given, "__iter__"):
        raise InvalidPipeline(f"A pipeline is built of a list of steps, not of {given!r}.")
    found: dict[int, PipelineStep] = {}
    waiting = list(flattened(given))
    while waiting:
        step = waiting.pop(0)
        if not isinstance(step, PipelineStep):
            raise InvalidPipeline(f"A pipeline is built of steps, and {step!r} is none.")
        if id(step) not in found:
            found[id(step)] = step
            waiting += step._needs() if closure else []
    if not found:
        raise InvalidPipeline("A pipeline needs at least one step.")
    return list(found.values())


def _in_order(steps: list[PipelineStep]) -> list[PipelineStep]:
    """Each after those that it waits for, and otherwise as they were given."""
    number = {id(step): each for each, step in enumerate(steps)}
    for step in steps:
        strangers = [each for each in step.run_after_steps if id(each) not in number]
        if strangers:
            raise InvalidPipeline(
                f"Step '{step.name}' runs after step '{strangers[0].name}', which is not in the pipeline."
            )
    needs = [{number[id(each)] for each in step._needs() if id(each) in number} for step in steps]
    circle = circle_in(needs)
    if circle:
        raise InvalidPipeline("The steps wait for each other: " + in_a_circle([steps[each].name for each in circle]))
    placed: dict[int, None] = {}
    left = list(range(len(steps)))
    while left:
        ready = [each for each in left if needs[each] <= set(placed)]
        placed.update(dict.fromkeys(ready))
        left = [each for each in left if each not in placed]
    return [steps[each] for each in placed]
