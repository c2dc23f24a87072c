"""Makes wheels: small ones, so that environments can be built in tests without a network, and that of Lapis itself."""

from __future__ import annotations

import atexit
import base64
import functools
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from azureml.core import Environment


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    code: str = "",
    requires: tuple[str, ...] = (),
    requires_python: str = "",
    files: Mapping[str, str] | None = None,
    noted: bool = False,
    record_of: str | None = None,
) -> Path:
    """A wheel of one module `name`, whose `VERSION` is `version`; or of `files`. With `noted` it tells their hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    needs += f"Requires-Python: {requires_python}\n" if requires_python else ""
    content = {
        **(files or {f"{name}.py": f"VERSION = {version!r}\n{code}\n"}),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    hashes = {each: _noted(record_of or text) if noted else "" for each, text in content.items()}
    content[f"{info}/RECORD"] = "".join(f"{each},{hashes.get(each, '')},\n" for each in (*content, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in content.items():
            wheel.writestr(zipfile.ZipInfo(file), text)  # without the time: the same content, the same hash
    return path


def _noted(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def environment_of(wheels: Path, *packages: str, name: str = "toy") -> Environment:
    """An environment whose packages come from that folder and from nowhere else."""
    made = Environment(name)
    made.python.conda_dependencies.set_pip_option("--no-index")
    made.python.conda_dependencies.set_pip_option(f"--find-links {wheels}")
    for package in packages:
        made.python.conda_dependencies.add_pip_package(package)
    return made


@functools.cache
def built_lapis() -> Path:
    """The wheel of this checkout, built once in this process."""
    folder = tempfile.mkdtemp(prefix="lapis-wheel-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True)
    (built,) = Path(folder).glob("*.whl")
    return built
