"""The packages of an environment: a conda file in memory, with a pip section."""

from __future__ import annotations

import copy
import os
import re
from typing import Any, Iterable

from lapis.client.submitting_python import submitting_python
from lapis.domain import yaml_text
from lapis.errors import NotFound, UserErrorException

CONDA_FILE_NAME = "conda_dependencies.yml"
# Of who writes it: it reads what he pickled.
PYTHON_DEFAULT_VERSION = ".".join(submitting_python().version.split(".")[:2])
SDK_PACKAGE = "azureml-defaults"
CPU = "cpu"
GPU = "gpu"


class CondaDependencies:
    """The conda and pip packages that a run or a service needs.

    Adding a package that is there already, in whatever version, replaces it, at the end of its list. Removing
    one that is not there changes nothing.
    """

    DEFAULT_NUMBER_OF_CONDA_PACKAGES = 0
    DEFAULT_NUMBER_OF_PIP_PACKAGES = 0

    def __init__(
        self,
        conda_dependencies_file_path: str | None = None,
        _underlying_structure: dict[str, Any] | None = None,
    ) -> None:
        if conda_dependencies_file_path is not None:
            self._conda_dependencies = _read_conda_file(conda_dependencies_file_path)
        elif _underlying_structure is not None:
            self._conda_dependencies = _checked(copy.deepcopy(_underlying_structure), "The conda specification")
        else:
            self._conda_dependencies = _default_specification()

    @staticmethod
    def create(
        pip_indexurl: str | None = None,
        pip_packages: list[str] | None = None,
        conda_packages: list[str] | None = None,
        python_version: str = PYTHON_DEFAULT_VERSION,
        pin_sdk_version: bool = True,
    ) -> CondaDependencies:
        """Return dependencies with these packages. The SDK's own is among them if `pip_packages` is None.

        `pin_sdk_version` changes nothing: in a run, the azureml packages are always those of Lapis.
        """
        created = CondaDependencies()
        created.set_python_version(python_version)
        for package in _listed(conda_packages, "conda_packages"):
            created.add_conda_package(package)
        if pip_packages is not None:
            created.set_pip_requirements(_listed(pip_packages, "pip_packages"))
        if pip_indexurl:
            created.set_pip_index_url(pip_indexurl)
        return created

    @staticmethod
    def merge_requirements(requirements: list[str]) -> list[str]:
        """Return one requirement for each package, with all its extras and version limits.

        ['numpy>=1.16', 'six', 'numpy<2'] becomes ['numpy>=1.16,<2', 'six'].
        """
        return _merged(_listed(requirements, "requirements"))

    @staticmethod
    def sdk_origin_url() -> str:
        """The index that SDK packages come from: none, since they come with Lapis."""
        return ""

    # Conda

    @property
    def conda_channels(self) -> list[str]:
        return list(self._conda_dependencies.get("channels") or [])

    def add_channel(self, channel: str) -> None:
        _check_text(channel, "channel")
        if channel not in self.conda_channels:
            self._conda_dependencies["channels"] = [*self.conda_channels, channel]

    def remove_channel(self, channel: str) -> None:
        self._conda_dependencies["channels"] = [kept for kept in self.conda_channels if kept != channel]

    @property
    def conda_packages(self) -> list[str]:
        return [package for package in self._dependencies if isinstance(package, str)]

    def add_conda_package(self, conda_package: str) -> None:
        """Add a package, as conda spells it: 'numpy', 'numpy=1.23', 'conda-forge::numpy>=1.20'."""
        _check_text(conda_package, "conda_package")
        self.remove_conda_package(conda_package)
        self._dependencies.append(conda_package)
        self._set_pip_lines(self._pip_lines())  # the pip section stays last

    def remove_conda_package(self, conda_package: str) -> None:
        name = _conda_name(conda_package)
        self._dependencies[:] = [
            package for package in self._dependencies if not (isinstance(package, str) and _conda_name(package) == name)
        ]

    def get_python_version(self) -> str | None:
        """The version of Python asked for, as text; None where none is."""
        for package in self.conda_packages:
            if _conda_name(package) == "python":
                return re.sub(r"^[^=<>!~\s]*\s*={0,2}\s*", "", package) or None
        return None

    def set_python_version(self, version: str) -> None:
        version = str(version)
        if not re.match(r"[0-9]+(\.[0-9*]+)*$", version):
            raise UserErrorException(f"A Python version looks like '3.8' or '3.8.13', not {version!r}.")
        others = [package for package in self._dependencies if package not in self._packages_named("python")]
        self._dependencies[:] = [f"python={version}", *others]

    def add_tensorflow_conda_package(self, core_type: str = CPU, version: str | None = None) -> None:
        name = _for_core_type("tensorflow", core_type)
        self._remove_conda_packages("tensorflow", "tensorflow-gpu")
        self.add_conda_package(f"{name}={version}" if version else name)

    # Pip

    @property
    def pip_packages(self) -> list[str]:
        return [line for line in self._pip_lines() if not _is_option(line)]

    def add_pip_package(self, pip_package: str) -> None:
        """Add a requirement, as pip spells it: 'numpy', 'numpy==1.23.5', 'tool @ https://example.org/tool.whl'."""
        _check_text(pip_package, "pip_package")
        self.remove_pip_package(pip_package)
        self._set_pip_lines([*self._pip_lines(), pip_package])

    def remove_pip_package(self, pip_package: str) -> None:
        name = _pip_name(pip_package)
        self._set_pip_lines([line for line in self._pip_lines() if _is_option(line) or _pip_name(line) != name])

    @property
    def pip_options(self) -> list[str]:
        return [line for line in self._pip_lines() if _is_option(line)]

    def set_pip_option(self, pip_option: str) -> None:
        """Add an option of pip, such as '--pre' or '--extra-index-url https://example.org/simple'."""
        _check_text(pip_option, "pip_option")
        if not _is_option(pip_option):
            raise UserErrorException(f"An option of pip starts with '-', which {pip_option!r} does not.")
        if pip_option not in self.pip_options:
            self._set_pip_lines([pip_option, *self._pip_lines()])

    def remove_pip_option(self, pip_option: str) -> None:
        self._set_pip_lines([line for line in self._pip_lines() if line != pip_option])

    def set_pip_index_url(self, index_url: str) -> None:
        """Make this the index of pip, in place of the one set before. Empty text: pip's own."""
        for option in self.pip_options:
            if re.match(r"(--index-url|-i)[ =]", option):
                self.remove_pip_option(option)
        if index_url:
            self.set_pip_option(f"--index-url {index_url}")

    def set_pip_requirements(self, pip_requirements: list[str]) -> None:
        """Make these, packages and options, the whole pip section."""
        lines = _listed(pip_requirements, "pip_requirements")
        for line in lines:
            _check_text(line, "pip_requirements")
        self._set_pip_lines(lines)

    def add_tensorflow_pip_package(self, core_type: str = CPU, version: str | None = None) -> None:
        name = _for_core_type("tensorflow", core_type)
        self.remove_pip_package("tensorflow")
        self.remove_pip_package("tensorflow-gpu")
        self.add_pip_package(f"{name}=={version}" if version else name)

    def add_cntk_package(self, core_type: str = CPU) -> None:
        self.add_pip_package(_for_core_type("cntk", core_type))

    # The whole

    def get_default_number_of_packages(self) -> int:
        return self.DEFAULT_NUMBER_OF_CONDA_PACKAGES + self.DEFAULT_NUMBER_OF_PIP_PACKAGES

    def as_dict(self) -> dict[str, Any]:
        """A copy of the conda file's content."""
        return copy.deepcopy(self._conda_dependencies)

    def serialize_to_string(self) -> str:
        """The text of the conda file."""
        return yaml_text.dumps(self._conda_dependencies)

    def save_to_file(self, base_directory: str, conda_file_path: str | None = None) -> str:
        """Write the conda file in `base_directory` and return its path relative to it, with '/'."""
        relative = os.path.normpath(conda_file_path or CONDA_FILE_NAME)
        self._write(os.path.join(base_directory, relative))
        return relative.replace(os.sep, "/")

    def save(self, path: str | None = None) -> str:
        """Write the conda file at `path`, or as conda_dependencies.yml in the folder `path`; return where."""
        where = path or os.curdir
        if os.path.isdir(where):
            where = os.path.join(where, CONDA_FILE_NAME)
        self._write(where)
        return os.path.normpath(where)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, CondaDependencies):
            return NotImplemented
        return self._conda_dependencies == other._conda_dependencies

    __hash__ = object.__hash__  # as in SDK v1

    def __repr__(self) -> str:
        return f"CondaDependencies(conda_packages={self.conda_packages}, pip_packages={self.pip_packages})"

    @property
    def _dependencies(self) -> list[Any]:
        """The list itself, to change it in place."""
        if not self._conda_dependencies.get("dependencies"):
            self._conda_dependencies["dependencies"] = []
        found: list[Any] = self._conda_dependencies["dependencies"]
        return found

    def _packages_named(self, name: str) -> list[str]:
        return [package for package in self.conda_packages if _conda_name(package) == name]

    def _remove_conda_packages(self, *names: str) -> None:
        for name in names:
            self.remove_conda_package(name)

    def _pip_lines(self) -> list[str]:
        return [line for part in self._dependencies if isinstance(part, dict) for line in part.get("pip") or []]

    def _set_pip_lines(self, lines: list[str]) -> None:
        without = [part for part in self._dependencies if not (isinstance(part, dict) and "pip" in part)]
        self._dependencies[:] = [*without, {"pip": lines}] if lines else without

    def _write(self, path: str) -> None:
        folder = os.path.dirname(path) or os.curdir
        if not os.path.isdir(folder):
            raise UserErrorException(f"There is no folder '{folder}' to save the conda file in.")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.serialize_to_string())


def _default_specification() -> dict[str, Any]:
    return {
        "name": "project_environment",
        "channels": ["anaconda", "conda-forge"],
        "dependencies": [f"python={PYTHON_DEFAULT_VERSION}", {"pip": [SDK_PACKAGE]}],
    }


def _read_conda_file(path: str) -> dict[str, Any]:
    if not os.path.isfile(path):
        raise NotFound(f"There is no conda file '{path}'.")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    try:
        found = yaml_text.loads(text)
    except yaml_text.YamlError as error:
        raise UserErrorException(f"The conda file '{path}' is not understood. {error}", inner_exception=error)
    return _checked(found, f"The conda file '{path}'")


def _checked(found: Any, whose: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise UserErrorException(f"{whose} must be a map with 'channels' and 'dependencies', not {found!r}.")
    for part in ("channels", "dependencies"):
        if found.get(part) is not None and not isinstance(found[part], list):
            raise UserErrorException(f"{whose}: '{part}' must be a list, not {found[part]!r}.")
    for dependency in found.get("dependencies") or []:
        if isinstance(dependency, dict) and list(dependency) == ["pip"]:
            for line in dependency["pip"] or []:
                _check_text(line, f"{whose}: a line of 'pip'")
        else:
            _check_text(dependency, f"{whose}: a dependency")
    return found


def _check_text(value: Any, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise UserErrorException(f"{what} must be text, such as 'numpy', not {value!r}.")


def _listed(packages: Iterable[str] | None, parameter: str) -> list[str]:
    if isinstance(packages, str):
        raise UserErrorException(f"{parameter} must be a list, not one text: ['{packages}'].")
    return list(packages or [])


def _is_option(line: str) -> bool:
    return line.startswith("-")


def _conda_name(package: str) -> str:
    """The name in a conda spec: 'conda-forge::NumPy>=1.2' is of numpy."""
    return re.split(r"[=<>!~\s\[]", package.split("::")[-1].strip(), maxsplit=1)[0].lower()


def _pip_name(requirement: str) -> str:
    """The normalised name in a requirement; a bare address or path is a name of its own."""
    match = _REQUIREMENT.match(requirement.strip())
    return re.sub(r"[-_.]+", "-", match.group("name")).lower() if match else requirement.strip()


_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
    r"(?P<limits>(?:[=<>!~].*?|@\s.*)?)$"
)


def _for_core_type(package: str, core_type: str) -> str:
    if str(core_type).lower() not in (CPU, GPU):
        raise UserErrorException(f"core_type must be '{CPU}' or '{GPU}', not {core_type!r}.")
    return package if str(core_type).lower() == CPU else f"{package}-gpu"


def _merged(requirements: list[str]) -> list[str]:
    names: dict[str, str] = {}
    extras: dict[str, list[str]] = {}
    limits: dict[str, list[str]] = {}
    for requirement in requirements:
        _check_text(requirement, "A requirement")
        match = _REQUIREMENT.match(requirement.strip())
        if match is None or "@" in match.group("limits") or ";" in requirement:
            names.setdefault(requirement.strip(), requirement.strip())  # an address, or one with a condition
            continue
        key = _pip_name(requirement)
        names.setdefault(key, match.group("name"))
        _add_new(extras.setdefault(key, []), (match.group("extras") or "").split(","))
        _add_new(limits.setdefault(key, []), match.group("limits").split(","))
    return [
        name + (f"[{','.join(extras[key])}]" if extras.get(key) else "") + ",".join(limits.get(key, []))
        for key, name in names.items()
    ]


def _add_new(found: list[str], parts: list[str]) -> None:
    for part in parts:
        if part.strip() and part.strip() not in found:
            found.append(part.strip())
