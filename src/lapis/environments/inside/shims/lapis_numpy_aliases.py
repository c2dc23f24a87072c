"""The names that NumPy gave up in 1.24 and 2.0, for scripts that still use them."""

from __future__ import annotations

from typing import Any

_BUILT_IN = {"bool": bool, "complex": complex, "float": float, "int": int, "long": int, "object": object, "str": str}
_RENAMED = {
    "Inf": "inf",
    "Infinity": "inf",
    "NaN": "nan",
    "alltrue": "all",
    "cfloat": "complex128",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "in1d": "isin",
    "infty": "inf",
    "product": "prod",
    "row_stack": "vstack",
    "sometrue": "any",
    "string_": "bytes_",
    "trapz": "trapezoid",
    "unicode": "str_",
    "unicode_": "str_",
}


def apply(numpy: Any) -> None:
    # vars, not hasattr: NumPy answers questions for the old names with warnings.
    names = vars(numpy)
    for name, value in _BUILT_IN.items():
        names.setdefault(name, value)
    for name, today in _RENAMED.items():
        if today in names:
            names.setdefault(name, names[today])
    if int(numpy.__version__.split(".")[0]) >= 2:
        numpy.set_printoptions(legacy="1.25")  # 0.5, not np.float64(0.5): scripts build JSON from it
