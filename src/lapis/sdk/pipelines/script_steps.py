"""Steps that run a script or a command."""

from __future__ import annotations

import copy
from typing import Any, Mapping

from lapis.errors import InvalidPipeline
from lapis.sdk.config.distribution import MpiConfiguration
from lapis.sdk.config.runconfig import RunConfiguration
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.pipelines import wiring
from lapis.sdk.pipelines.parameters import PipelineParameter
from lapis.sdk.pipelines.steps import PipelineStep

# The names by which SDK v1 lets a parameter set a part of the run configuration.
_RUNCONFIG_PARAMS = {
    "NodeCount": ("node_count",),
    "MpiProcessCountPerNode": ("mpi", "process_count_per_node"),
    "TensorflowWorkerCount": ("tensorflow", "worker_count"),
    "TensorflowParameterServerCount": ("tensorflow", "parameter_server_count"),
}


class ScriptStepBase(PipelineStep):
    """What steps with a script or a command have in common."""

    def __init__(
        self,
        name: str | None,
        *,
        script: str | None = None,
        command: Any = None,
        arguments: Any = None,
        compute_target: Any = None,
        runconfig: RunConfiguration | None = None,
        runconfig_pipeline_params: Mapping[str, PipelineParameter] | None = None,
        inputs: Any = None,
        outputs: Any = None,
        params: Mapping[str, Any] | None = None,
        source_directory: str | None = None,
        allow_reuse: bool = True,
        version: str | None = None,
    ) -> None:
        self._script, self._command = script, command
        self._compute_target, self._runconfig = compute_target, runconfig
        self._runconfig_params = dict(runconfig_pipeline_params or {})
        self._params = dict(params or {})
        self._source_directory = source_directory
        self._allow_reuse, self._version = bool(allow_reuse), None if version is None else str(version)
        unknown = sorted(set(self._runconfig_params) - set(_RUNCONFIG_PARAMS))
        if unknown:
            known = ", ".join(_RUNCONFIG_PARAMS)
            raise InvalidPipeline(f"runconfig_pipeline_params of step '{name}' has {unknown[0]!r}. Known: {known}.")
        if runconfig is not None and not hasattr(runconfig, "environment"):
            raise InvalidPipeline(
                f"runconfig of step '{name}' must be a RunConfiguration, not {type(runconfig).__name__}."
            )
        words = command if isinstance(command, (list, tuple)) else arguments
        super().__init__(name, inputs, outputs, words)

    def _parameters(self) -> list[PipelineParameter]:
        return [*super()._parameters(), *wiring.parameters_in(self._params.values(), self._runconfig_params.values())]

    def _variables(self, values: Mapping[str, Any]) -> dict[str, str]:
        """What `params` gives the script, beside the parameters of the pipeline that it uses."""
        given = {
            name: values[value.name] if isinstance(value, PipelineParameter) else value
            for name, value in self._params.items()
        }
        return {f"AML_PARAMETER_{name}": str(value) for name, value in given.items()}

    def _script_config(self, context: Any) -> ScriptRunConfig:
        config = copy.deepcopy(self._runconfig) if self._runconfig is not None else RunConfiguration()
        for name, parameter in self._runconfig_params.items():
            _set(config, _RUNCONFIG_PARAMS[name], context.values[parameter.name])
        words = [context.word(self, each) for each in self._arguments]
        command = self._command
        if isinstance(command, (list, tuple)):
            command = [f'"{each}"' if str(each).startswith("$A") else each for each in words]  # variables, for a shell
        return ScriptRunConfig(
            self._source_directory or context.source_directory,
            script=self._script,
            arguments=words if self._script else None,
            run_config=config,
            compute_target=self._compute_target,
            command=command,
            max_run_duration_seconds=None,
        )


class PythonScriptStep(ScriptStepBase):
    """Runs a Python script."""

    def __init__(
        self,
        script_name: str,
        name: str | None = None,
        arguments: Any = None,
        compute_target: Any = None,
        runconfig: RunConfiguration | None = None,
        runconfig_pipeline_params: Mapping[str, PipelineParameter] | None = None,
        inputs: Any = None,
        outputs: Any = None,
        params: Mapping[str, Any] | None = None,
        source_directory: str | None = None,
        allow_reuse: bool = True,
        version: str | None = None,
        hash_paths: Any = None,
    ) -> None:
        if not isinstance(script_name, str) or not script_name:
            raise InvalidPipeline(f"script_name must name a script below source_directory, not {script_name!r}.")
        super().__init__(
            name or script_name, script=script_name, arguments=arguments, compute_target=compute_target,
            runconfig=runconfig, runconfig_pipeline_params=runconfig_pipeline_params, inputs=inputs, outputs=outputs,
            params=params, source_directory=source_directory, allow_reuse=allow_reuse, version=version,
        )  # fmt: skip

    def set_amlcompute_params(self, native_shared_directory: str | None = None) -> None:
        """Of Azure's clusters alone: nodes share what the datastores hold."""


class CommandStep(ScriptStepBase):
    """Runs a command in a shell. `command` is text, or a list in which data and parameters stand among text."""

    def __init__(
        self,
        command: Any = None,
        name: str | None = None,
        compute_target: Any = None,
        runconfig: RunConfiguration | None = None,
        runconfig_pipeline_params: Mapping[str, PipelineParameter] | None = None,
        inputs: Any = None,
        outputs: Any = None,
        params: Mapping[str, Any] | None = None,
        source_directory: str | None = None,
        allow_reuse: bool = True,
        version: str | None = None,
    ) -> None:
        command = command if command is not None else getattr(runconfig, "command", None)
        if not command or not isinstance(command, (str, list, tuple)):
            raise InvalidPipeline(f"CommandStep needs a command, as text or as a list, not {command!r}.")
        first = command if isinstance(command, str) else str(command[0])
        super().__init__(
            name or first.split()[0], command=command, compute_target=compute_target, runconfig=runconfig,
            runconfig_pipeline_params=runconfig_pipeline_params, inputs=inputs, outputs=outputs, params=params,
            source_directory=source_directory, allow_reuse=allow_reuse, version=version,
        )  # fmt: skip


class EstimatorStep(PythonScriptStep):
    """Runs what an estimator describes. Its arguments stand here, as SDK v1 wants it."""

    def __init__(
        self,
        name: str | None = None,
        estimator: Any = None,
        estimator_entry_script_arguments: Any = None,
        runconfig_pipeline_params: Mapping[str, PipelineParameter] | None = None,
        inputs: Any = None,
        outputs: Any = None,
        compute_target: Any = None,
        allow_reuse: bool = True,
        version: str | None = None,
    ) -> None:
        if not hasattr(estimator, "_script_run_config"):
            raise InvalidPipeline(f"EstimatorStep needs an estimator, not {type(estimator).__name__}.")
        config = estimator._script_run_config({})
        arguments = estimator_entry_script_arguments
        if arguments is None:
            arguments = list(config.run_config.arguments or [])
        super().__init__(
            config.run_config.script, name or config.run_config.script, arguments, compute_target,
            _without_words(config.run_config), runconfig_pipeline_params, inputs, outputs, None,
            config.source_directory, allow_reuse, version,
        )  # fmt: skip


class MpiStep(PythonScriptStep):
    """Runs a script by MPI, on several nodes and in several processes."""

    def __init__(
        self,
        name: str | None = None,
        source_directory: str | None = None,
        script_name: str | None = None,
        arguments: Any = None,
        compute_target: Any = None,
        node_count: Any = None,
        process_count_per_node: Any = None,
        inputs: Any = None,
        outputs: Any = None,
        allow_reuse: bool = True,
        version: str | None = None,
        hash_paths: Any = None,
        **kwargs: Any,
    ) -> None:
        self._counts = {"NodeCount": node_count, "MpiProcessCountPerNode": process_count_per_node}
        given = {key: value for key, value in self._counts.items() if isinstance(value, PipelineParameter)}
        super().__init__(
            script_name or "", name, arguments, compute_target, kwargs.get("runconfig"), given, inputs, outputs,
            kwargs.get("params"), source_directory, allow_reuse, version,
        )  # fmt: skip

    def _script_config(self, context: Any) -> ScriptRunConfig:
        made = super()._script_config(context)
        counts = {
            key: context.values[value.name] if isinstance(value, PipelineParameter) else value
            for key, value in self._counts.items()
        }
        settings = MpiConfiguration(counts["MpiProcessCountPerNode"] or 1, counts["NodeCount"] or 1)
        return ScriptRunConfig(
            made.source_directory, made.script, made.arguments, made.run_config, distributed_job_config=settings,
            max_run_duration_seconds=None,
        )  # fmt: skip


def _without_words(run_config: Any) -> Any:
    """A copy without script and arguments, which the step has itself."""
    config = copy.deepcopy(run_config)
    config.script, config.arguments = None, []
    return config


def _set(config: Any, path: Any, value: Any) -> None:
    *way, last = path
    for name in way:
        config = getattr(config, name)
    setattr(config, last, value)
