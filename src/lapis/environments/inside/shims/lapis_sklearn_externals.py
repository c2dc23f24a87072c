"""`from sklearn.externals import joblib` and `six`, which scikit-learn gave up in 0.23."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any


def apply(externals: Any) -> None:
    for name in ("joblib", "six"):
        whole = f"{externals.__name__}.{name}"
        if whole in sys.modules or importlib.util.find_spec(whole) is not None:
            continue  # scikit-learn's own, up to 0.22
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # not installed: the script is told so when it asks for it
        sys.modules[whole] = module
        setattr(externals, name, module)
