"""Names of a package that are looked up when first used, so that importing the package is quick."""

from __future__ import annotations

import sys
from importlib import import_module

from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable, Mapping


def on_demand(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for `package`: a name comes from its home, or is a submodule.

    `from package import *` brings what the package offers and no submodule, whose name (`run`, `policy`) would
    replace one of the notebook's own.
    """

    def find(name: str) -> Any:
        if name == "__all__":
            return [each for each in names() if not each.startswith("_") and not _is_module(package, each)]
        value = getattr(import_module(homes[name]), name) if name in homes else _submodule(package, name)
        setattr(sys.modules[package], name, value)  # the next look-up does not come here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names


def _is_module(package: str, name: str) -> bool:
    return isinstance(vars(sys.modules[package]).get(name), type(sys))


def _submodule(package: str, name: str) -> Any:
    full_name = f"{package}.{name}"
    missing = AttributeError(f"module {package!r} has no attribute {name!r}")
    if name.startswith("__"):
        raise missing
    try:
        return import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise  # the submodule is there; something that it imports is not
        raise missing from None
