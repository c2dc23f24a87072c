"""Runs a helper right after a module was imported, or lends another module its name. Lapis puts this file beside the
packages of an environment; it imports nothing until a module that it watches is imported.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is slow to import, and this file is imported whenever Python starts
if TYPE_CHECKING:
    from typing import Any

_AFTER: dict[str, str] = {}  # module -> helper whose apply(module) is called once it is there
_INSTEAD: dict[str, str] = {}  # package -> helper whose stand_in(name) gives the module for that name


def watch(after: dict[str, str], instead: dict[str, str]) -> None:
    _AFTER.update(after)
    _INSTEAD.update(instead)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def watches(module: str) -> bool:
    return module in _AFTER


def tell(text: str) -> None:
    sys.stderr.write("Lapis: " + text + "\n")


class _Finder:
    def __init__(self) -> None:
        self._looking: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        for package in _INSTEAD:
            if name == package or name.startswith(package + "."):
                return self._other(name, _INSTEAD[package])
        if name not in _AFTER or name in self._looking:
            return None
        self._looking.add(name)
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec: Any = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader, _AFTER[name])
                    return spec
            return None
        finally:
            self._looking.discard(name)

    def _other(self, name: str, helper: str) -> Any:
        from importlib.machinery import ModuleSpec

        loader: Any = _StandIn(helper)
        return ModuleSpec(name, loader, is_package=True)


class _Loader:
    """The module's own loader, and the helper's turn after it."""

    def __init__(self, loader: Any, helper: str) -> None:
        self._loader = loader
        self._helper = helper

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            __import__(self._helper)
            sys.modules[self._helper].apply(sys.modules.get(module.__name__, module))
        except Exception as error:  # help that fails must not take the module along
            tell(f"the help for old code in {module.__name__} did not work: {error!r}")


class _StandIn:
    def __init__(self, helper: str) -> None:
        self._helper = helper

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: Any) -> None:
        __import__(self._helper)
        # What stands in sys.modules afterwards is what the import gives.
        sys.modules[module.__name__] = sys.modules[self._helper].stand_in(module.__name__, module)
