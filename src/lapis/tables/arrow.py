"""PyArrow of the user's environment. Import this module late: only where rows are read or written."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from lapis.errors import UserErrorException


def needed(name: str) -> Any:
    """The module, or an error that says what to install where."""
    try:
        return import_module(name)
    except ImportError as missing:
        raise UserErrorException(
            f"Tables need the packages pyarrow and pandas in the environment of {sys.executable} ({missing}). "
            "Install them: pip install pyarrow pandas"
        ) from None


pa = needed("pyarrow")
pc = needed("pyarrow.compute")
arrow_csv = needed("pyarrow.csv")
arrow_json = needed("pyarrow.json")
arrow_dataset = needed("pyarrow.dataset")
parquet = needed("pyarrow.parquet")
