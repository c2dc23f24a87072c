"""What every step is, and steps in a row."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, NoReturn

from lapis.errors import InvalidPipeline, NotThereYet
from lapis.sdk.data.consumption import DatasetConsumptionConfig
from lapis.sdk.data.output_dataset_config import OutputDatasetConfig
from lapis.sdk.pipelines import wiring
from lapis.sdk.pipelines.parameters import PipelineParameter

_OWN_STEPS = "Build on PythonScriptStep or CommandStep: Lapis makes the nodes of a graph itself."


class PipelineStep:
    """A part of a pipeline: what it reads, what it writes, and in its subclasses what it runs."""

    def __init__(
        self,
        name: str | None,
        inputs: Iterable[Any] | None,
        outputs: Iterable[Any] | None,
        arguments: Iterable[Any] | None = None,
        fix_port_name_collisions: bool = False,
        resource_inputs: Iterable[Any] | None = None,
    ) -> None:
        self.name = _checked_name(name)
        self.step_type = type(self).__name__
        self.run_after_steps: list[PipelineStep] = []
        self._inputs = [*_listed("inputs", inputs), *_listed("resource_inputs", resource_inputs)]
        self._outputs = _listed("outputs", outputs)
        self._arguments = _listed("arguments", arguments)
        self._written = [wiring.written_by(each) for each in self._outputs]
        for each in self._arguments:
            if isinstance(each, OutputDatasetConfig) and all(each._origin is not w._origin for w in self._written):
                self._written.append(each)
        for output in self._written:
            output._origin.step = self
        for each in self._arguments:
            wiring.check_argument(self.name, each, self._joined(), self._written)
        self._check_names()

    def run_after(self, step: Any) -> Any:
        """Start only when that step has completed. Gives that step back."""
        for each in flattened([step]):
            if not isinstance(each, PipelineStep):
                raise InvalidPipeline(f"Step '{self.name}' can run after a step, not after {step!r}.")
            if each not in self.run_after_steps:
                self.run_after_steps.append(each)
        return step

    # -- for whoever builds a pipeline of it

    def _joined(self) -> list[wiring.Joined]:
        """The inputs that other steps write, each once."""
        given = [
            *self._inputs,
            *(each for each in self._arguments if isinstance(each, DatasetConsumptionConfig)),
        ]
        found: dict[str, wiring.Joined] = {}
        for value in given:
            wanted = wiring.joined(value)
            if wanted is not None:
                found.setdefault(wanted.name, wanted)
        return list(found.values())

    def _needs(self) -> list[PipelineStep]:
        """The steps that this one waits for."""
        writers = [wanted.origin.step for wanted in self._joined()]
        return list(dict.fromkeys([*filter(None, writers), *self.run_after_steps]))

    def _from_outside(self, values: Mapping[str, Any]) -> list[Any]:
        return [wiring.from_outside(each, values) for each in self._inputs if wiring.joined(each) is None]

    def _parameters(self) -> list[PipelineParameter]:
        return wiring.parameters_in(self._inputs, self._arguments)

    def _search(self) -> dict[str, Any]:
        """What it searches for; nothing, unless it is a search."""
        return {}

    def _trained_outputs(self) -> list[Any]:
        """Outputs that a search writes itself."""
        found = [each for each in self._written if getattr(each, "training_output", None) is not None]
        if found and not self._search():
            raise InvalidPipeline(
                f"Output '{found[0].name}' of step '{self.name}' is trained, and only a HyperDriveStep writes one."
            )
        return found

    def _script_config(self, context: Any) -> Any:
        """What the step runs, as a ScriptRunConfig."""
        raise NotThereYet(f"A step of class {type(self).__name__}", _OWN_STEPS)

    def _check_names(self) -> None:
        names = [wanted.name for wanted in self._joined()]
        names += [getattr(output, "_output_name", None) or output.name for output in self._written]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidPipeline(
                f"Step '{self.name}' has two inputs or outputs named '{twice[0]}'. Give one of them another name, for "
                "an input with as_input('name')."
            )

    # -- SDK v1's own way to make nodes, for steps of one's own

    def create_node(self, graph: Any, default_datastore: Any, context: Any) -> NoReturn:
        raise NotThereYet("PipelineStep.create_node", _OWN_STEPS)

    def create_input_output_bindings(
        self, inputs: Any, outputs: Any, default_datastore: Any, resource_inputs: Any = None
    ) -> NoReturn:
        raise NotThereYet("PipelineStep.create_input_output_bindings", _OWN_STEPS)

    def create_module_def(
        self, execution_type: Any, input_bindings: Any, output_bindings: Any, param_defs: Any = None,
        create_sequencing_ports: bool = True, allow_reuse: bool = True, version: Any = None, module_type: Any = None,
        arguments: Any = None, runconfig: Any = None, cloud_settings: Any = None,
    ) -> NoReturn:  # fmt: skip
        raise NotThereYet("PipelineStep.create_module_def", _OWN_STEPS)

    def get_source_directory(self, context: Any, source_directory: Any, script_name: Any) -> Any:
        return source_directory or "."

    def get_source_directory_and_hash_paths(
        self, context: Any, source_directory: Any, script_name: Any, hash_paths: Any
    ) -> Any:
        return source_directory or ".", list(hash_paths or [])

    @staticmethod
    def resolve_input_arguments(arguments: Any, inputs: Any, outputs: Any, params: Any) -> NoReturn:
        raise NotThereYet("PipelineStep.resolve_input_arguments", _OWN_STEPS)

    @staticmethod
    def validate_arguments(arguments: Any, inputs: Any, outputs: Any) -> None:
        """Every argument that stands for data is among the inputs or the outputs."""
        PipelineStep("step", inputs, outputs, arguments)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class StepSequence:
    """Steps that run one after the other; a list in it is steps that may run together."""

    def __init__(self, steps: Any = None) -> None:
        self.steps = list(steps or [])
        before: list[PipelineStep] = []
        for each in self.steps:
            together = list(flattened([each]))
            for step in together:
                if isinstance(step, PipelineStep):
                    for earlier in before:
                        step.run_after(earlier)
            before = together or before

    def __iter__(self) -> Iterator[Any]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        return self.steps[index]


def flattened(steps: Any) -> Iterator[Any]:
    """The steps of lists in lists."""
    for each in steps:
        if isinstance(each, (list, tuple, StepSequence)):
            yield from flattened(each)
        else:
            yield each


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 255:
        raise InvalidPipeline(f"The name of a step is text of 1 to 255 characters, not {name!r}.")
    return name


def _listed(what: str, given: Any) -> list[Any]:
    if given is None:
        return []
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__iter__"):
        raise InvalidPipeline(f"{what} of a step is a list, not {type(given).__name__} ({given!r}).")
    return list(given)
