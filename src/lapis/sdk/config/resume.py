"""Going on from the files of an earlier run: how a script is told where they are."""

from __future__ import annotations

from typing import Any

from lapis.errors import UserErrorException
from lapis.sdk.data.data_reference import DataPath

_REFERENCE = "MODEL_LOCATION"  # the variable AZUREML_DATAREFERENCE_MODEL_LOCATION holds the path too


def resume_arguments(resume_from: Any) -> list[Any]:
    """The arguments that SDK v1 adds for `resume_from`: --resume-from and the folder."""
    if resume_from is None:
        return []
    if not isinstance(resume_from, DataPath):
        raise UserErrorException(
            f"resume_from must be a DataPath, the place of the files to go on from, not {type(resume_from).__name__}."
        )
    return ["--resume-from", resume_from.create_data_reference(_REFERENCE)]
