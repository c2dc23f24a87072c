"""Makes small wheels, so that environments can be built in tests without a network."""

from __future__ import annotations

import zipfile
from pathlib import Path

from azureml.core import Environment


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    code: str = "",
    requires: tuple[str, ...] = (),
    requires_python: str = "",
) -> Path:
    """A wheel of one module `name`, whose `VERSION` is `version`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    needs += f"Requires-Python: {requires_python}\n" if requires_python else ""
    files = {
        f"{name}.py": f"VERSION = {version!r}\n{code}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(zipfile.ZipInfo(file), text)  # without the time: the same content, the same hash
    return path


def environment_of(wheels: Path, *packages: str, name: str = "toy") -> Environment:
    """An environment whose packages come from that folder and from nowhere else."""
    made = Environment(name)
    made.python.conda_dependencies.set_pip_option("--no-index")
    made.python.conda_dependencies.set_pip_option(f"--find-links {wheels}")
    for package in packages:
        made.python.conda_dependencies.add_pip_package(package)
    return made
