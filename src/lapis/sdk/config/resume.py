"""Going on from the files of an earlier run: how a script is told where they are."""

from __future__ import annotations

from typing import Any, Iterable

from lapis.errors import UserErrorException

_REFERENCE = "MODEL_LOCATION"  # the variable AZUREML_DATAREFERENCE_MODEL_LOCATION holds the path too


class OutputsOf(str):
    """The argument that stands for the folder with an earlier run's outputs."""

    run_id: str

    def __new__(cls, run_id: str) -> OutputsOf:
        made = super().__new__(cls, f"$AZUREML_DATAREFERENCE_{_REFERENCE}")
        made.run_id = run_id
        return made

    def __reduce__(self) -> Any:  # a configuration is copied before it is submitted
        return OutputsOf, (self.run_id,)


def resumed_run(arguments: Iterable[Any]) -> str | None:
    """The run whose outputs one of the arguments stands for."""
    return next((each.run_id for each in arguments if isinstance(each, OutputsOf)), None)


def resume_arguments(resume_from: Any) -> list[Any]:
    """The arguments that SDK v1 adds for `resume_from`: --resume-from and the folder."""
    if resume_from is None:
        return []
    if not hasattr(resume_from, "create_data_reference"):
        raise UserErrorException(
            f"resume_from must be a DataPath, the place of the files to go on from, not {type(resume_from).__name__}."
        )
    run_id = getattr(resume_from, "run_id", None)
    if run_id is not None:
        return ["--resume-from", OutputsOf(run_id)]
    return ["--resume-from", resume_from.create_data_reference(_REFERENCE)]
