"""Help for old scripts on newer packages: small files beside an environment's packages. `shims` has their text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

_HOOK = "lapis_old_code"


@dataclass(frozen=True)
class _Shim:
    """Which imports bring a helper in: after a module, or instead of a package and all below it."""

    after: tuple[tuple[str, str], ...] = ()
    instead: tuple[tuple[str, str], ...] = ()


SHIMS: dict[str, _Shim] = {
    "numpy_aliases": _Shim(after=(("numpy", "lapis_numpy_aliases"),)),
    "sklearn_externals": _Shim(after=(("sklearn.externals", "lapis_sklearn_externals"),)),
    # The modules in which Keras 2.11, 2.12, 2.13 to 2.15, 3 and tf-keras define what all optimizers inherit from.
    "learning_rate": _Shim(
        after=(
            ("keras.optimizers.optimizer_experimental.optimizer", "lapis_learning_rate"),
            ("keras.optimizers.optimizer", "lapis_learning_rate"),
            ("keras.src.optimizers.optimizer", "lapis_learning_rate"),
            ("keras.src.optimizers.base_optimizer", "lapis_learning_rate"),
            ("tf_keras.src.optimizers.optimizer", "lapis_learning_rate"),
        )
    ),
    "keras_optimizers": _Shim(after=(("keras.optimizers", "lapis_keras_optimizers"),)),
    "legacy_keras": _Shim(instead=(("keras", "lapis_legacy_keras"),)),
    "tensorflow_1": _Shim(
        after=(("tensorflow", "lapis_tensorflow_1"),), instead=(("tensorflow.examples", "lapis_tensorflow_examples"),)
    ),
}


def shim_files(names: Iterable[str]) -> dict[str, str]:
    """The files that these shims put in site-packages: file name -> text. No names, no files."""
    chosen = [SHIMS[name] for name in sorted(set(names))]
    if not chosen:
        return {}
    after = {module: helper for shim in chosen for module, helper in shim.after}
    instead = {package: helper for shim in chosen for package, helper in shim.instead}
    modules = {_HOOK, *after.values(), *instead.values()}
    files = {f"{module}.py": _text(module) for module in sorted(modules)}
    # A line of a .pth file that begins with import is run when Python starts.
    files[f"{_HOOK}.pth"] = f"import {_HOOK}; {_HOOK}.watch({after!r}, {instead!r})\n"
    return files


def _text(module: str) -> str:
    return (resources.files("lapis.environments.inside") / "shims" / f"{module}.py").read_text(encoding="utf-8")
