"""Modules that are loaded when something of them is first used, so that importing `azureml` is quick.

In a package that calls `load_late(__name__)`, `from package import module` gives the module before it is loaded: the
first look at one of its names loads it. `from package.module import name` loads it at once, as everywhere. To readers
and type checkers both are imports as any other. docs/decisions/0031 says where this is worth it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader

# What type checkers take for true, as they do that of `typing`, whose import alone takes as long as Python's start.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Sequence
else:
    ModuleType = type(sys)

_waiting: dict[str, LateModule] = {}


def load_late(package: str) -> None:
    """From now on `from package import module` does not load the module yet."""

    def find(name: str) -> LateModule:
        full_name = f"{package}.{name}"
        if name.startswith("__") or PathFinder.find_spec(full_name, vars(sys.modules[package])["__path__"]) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return _waiting.setdefault(full_name, LateModule(full_name))

    # Set so, type checkers go on telling names that no module has.
    vars(sys.modules[package])["__getattr__"] = find
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def load_waiting() -> None:
    """Load what was imported and not yet used: once, before this process is forked many times."""
    while _waiting:
        for name in list(_waiting):
            import_module(name)
            _waiting.pop(name, None)


class LateModule(ModuleType):
    """A module that waits. Once it is loaded it is a plain one, the same object for all who had imported it."""

    def __getattr__(self, name: str) -> Any:
        if not _is_of_imports(name):
            loaded = import_module(self.__name__)  # waits where another thread is at it
            if loaded is not self or name in vars(self):
                return getattr(loaded, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if not _is_of_imports(name):
            import_module(self.__name__)  # else loading would put back what somebody replaces
        ModuleType.__setattr__(self, name, value)  # by now it may be a plain one

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))


def _is_of_imports(name: str) -> bool:
    """Whether the import system sets it, and looks at it, before a module is loaded."""
    return name.startswith("__")


class _Finder:
    """Has the import system load a waiting module in its place, and under its locks, in place of a new one."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        found = PathFinder.find_spec(name, path)
        if found is not None and type(found.loader) is SourceFileLoader:
            found.loader = _Loader(found.loader.name, found.loader.path)
        return found


class _Loader(SourceFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _waiting.get(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _waiting.pop(module.__name__, None)
        module.__class__ = ModuleType
