"""The packages of a conda environment of this machine, as conda itself lists them."""

from __future__ import annotations

from typing import Any

from lapis.errors import UserErrorException
from lapis.sdk.environments.conda_dependencies import CondaDependencies

_OF_THIS_MACHINE = ("prefix", "name")  # of what conda exports


def exported(environment_name: Any) -> CondaDependencies:
    """What `conda env export` says, without the build numbers that only one platform has."""
    from lapis.domain import yaml_text

    if not isinstance(environment_name, str) or not environment_name:
        raise UserErrorException(f"conda_environment_name must be the name of one, not {environment_name!r}.")
    text = _conda("env", "export", "--name", environment_name, "--no-builds")
    try:
        found = yaml_text.loads(text)
    except yaml_text.YamlError as error:
        raise UserErrorException(f"What conda exports of '{environment_name}' is not understood. {error}")
    kept = {key: value for key, value in found.items() if key not in _OF_THIS_MACHINE} if found else {}
    return CondaDependencies(_underlying_structure=kept)


def _conda(*arguments: str) -> str:
    import os
    import shutil
    import subprocess

    conda = os.environ.get("CONDA_EXE") or shutil.which("conda")
    if conda is None:
        raise UserErrorException(
            "There is no conda on this machine's PATH. Where there is one, `conda env export` writes a file that "
            "Environment.from_conda_specification reads."
        )
    said = subprocess.run([conda, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if said.returncode != 0:
        raise UserErrorException(f"`conda {' '.join(arguments)}` failed: {said.stderr.strip() or said.stdout.strip()}")
    return said.stdout
