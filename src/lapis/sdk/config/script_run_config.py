"""ScriptRunConfig: what to run, with which arguments, where, and in which environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable

from lapis.errors import UserErrorException
from lapis.sdk.config.runconfig import DockerConfiguration, RunConfiguration, apply_distributed

if TYPE_CHECKING:
    from lapis.sdk.compute.compute_target import ComputeTarget
    from lapis.sdk.config.distribution import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
    from lapis.sdk.data.data_reference import DataPath
    from lapis.sdk.environments.environment import Environment
    from lapis.sdk.runs.script_run import ScriptRun
    from lapis.sdk.workspace.workspace import Workspace

MAX_DURATION_SECONDS_DEFAULT = 2592000


class ScriptRunConfig:
    """Nothing is checked against the disk before submit(), as in SDK v1."""

    MAX_DURATION_SECONDS_DEFAULT = MAX_DURATION_SECONDS_DEFAULT

    def __init__(
        self,
        source_directory: str | os.PathLike[str] | None,
        script: str | os.PathLike[str] | None = None,
        arguments: Iterable[Any] | None = None,
        run_config: RunConfiguration | None = None,
        _telemetry_values: Any = None,
        compute_target: ComputeTarget | str | None = None,
        environment: Environment | None = None,
        distributed_job_config: MpiConfiguration | TensorflowConfiguration | PyTorchConfiguration | None = None,
        resume_from: DataPath | None = None,
        max_run_duration_seconds: int | None = MAX_DURATION_SECONDS_DEFAULT,
        command: str | list[Any] | None = None,
        docker_runtime_config: DockerConfiguration | None = None,
    ) -> None:
        if script is not None and command is not None:
            raise UserErrorException("ScriptRunConfig takes either script or command, not both.")
        if command is not None and (arguments or resume_from is not None):
            raise UserErrorException(
                "ScriptRunConfig takes arguments and resume_from with a script; they are part of the command otherwise."
            )
        self.source_directory = _checked_path("source_directory", source_directory) or "."
        self.script = _checked_path("script", script)
        self.arguments = _checked_arguments(arguments)
        if resume_from is not None:
            from lapis.sdk.config.resume import resume_arguments  # late: few need it

            self.arguments += resume_arguments(resume_from)
        if command is not None:
            self.arguments = None
        self.command = _checked_command(command)
        if run_config is not None and not hasattr(run_config, "environment"):
            raise UserErrorException(f"run_config must be a RunConfiguration, not {type(run_config).__name__}.")
        self.run_config = run_config if run_config is not None else RunConfiguration()
        if compute_target is not None:
            self.run_config.target = compute_target
        if environment is not None:
            self.run_config.environment = _checked_environment(environment)
        if distributed_job_config is not None:
            apply_distributed(self.run_config, distributed_job_config)
        if max_run_duration_seconds is not None:
            self.run_config.max_run_duration_seconds = _checked_seconds(max_run_duration_seconds)
        if docker_runtime_config is not None:
            self.run_config.docker = docker_runtime_config

    @property
    def identity(self) -> str:
        return f"{self.source_directory}:{self.script or self.command}"

    def __repr__(self) -> str:
        what = f"script={self.script!r}" if self.command is None else f"command={self.command!r}"
        return f"ScriptRunConfig(source_directory={self.source_directory!r}, {what}, arguments={self.arguments!r})"


def get_run_config_from_script_run(script_run_config: ScriptRunConfig) -> RunConfiguration:
    """A copy of the RunConfiguration with the script and arguments in it."""
    from copy import deepcopy

    run_config = deepcopy(script_run_config.run_config)
    run_config.script = script_run_config.script or run_config.script
    run_config.arguments = script_run_config.arguments or run_config.arguments
    run_config.command = script_run_config.command or run_config.command
    return run_config


def submit(
    script_run_config: ScriptRunConfig, workspace: Workspace, experiment_name: str, run_id: str | None = None,
    _parent_run_id: str | None = None, credential_passthrough: bool = False,
) -> ScriptRun:  # fmt: skip
    """Submit under an experiment's name; experiment.submit() does the same."""
    from lapis.sdk.runs.experiment import Experiment

    return Experiment(workspace, experiment_name).submit(script_run_config, run_id=run_id)


def _checked_path(what: str, path: Any) -> str | None:
    if path is not None and not isinstance(path, (str, os.PathLike)):
        raise UserErrorException(f"{what} must be a path, not {type(path).__name__} ({path!r}).")
    return None if path is None else str(os.fspath(path))


def _checked_arguments(arguments: Any) -> Any:
    if arguments is None:
        return []
    if isinstance(arguments, (str, bytes)) or not hasattr(arguments, "__iter__") or isinstance(arguments, dict):
        raise UserErrorException(f"arguments must be a list such as ['--epochs', 3], not {type(arguments).__name__}.")
    return list(arguments)


def _checked_command(command: Any) -> Any:
    if command is None or (isinstance(command, str) and command.strip()):
        return command
    if isinstance(command, (list, tuple)) and command:
        return list(command)
    raise UserErrorException(f"command must be text or a list of text, not {command!r}.")


def _checked_environment(environment: Any) -> Any:
    if not hasattr(environment, "python"):
        raise UserErrorException(f"environment must be an Environment, not {type(environment).__name__}.")
    return environment


def _checked_seconds(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e12:
        raise UserErrorException(f"max_run_duration_seconds must be a number above 0, not {value!r}.")
    return int(value) if value >= 1 else 1
