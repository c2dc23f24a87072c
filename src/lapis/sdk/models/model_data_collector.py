"""Keeps what an entry script hands to it, rows of a table, in a file for each day."""

from __future__ import annotations

import csv
import datetime
import io
import os
from typing import Any, Iterable, Sequence

FOLDER = "LAPIS_COLLECT"  # set where the service was deployed with data collection
_ALLOWED = "-_."


class ModelDataCollector:
    """`collect(data)` appends to <folder>/<model>/<version>/<designation>/<year>/<month>/<day>/data.csv.

    Where the service was deployed without data collection nothing is kept, and nothing fails.
    """

    def __init__(
        self,
        model_name: str,
        designation: str = "default",
        feature_names: Sequence[str] | None = None,
        model_version: Any = None,
        identifier: str | None = None,
        workspace: Any = None,
        webservice_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        self._names = list(feature_names) if feature_names is not None else None
        parts = (model_name, str(model_version or 1), identifier or designation)
        self._place = [_as_folder(part) for part in parts]

    def collect(self, input_data: Any, user_correlation_id: str = "") -> str:
        """Keep the rows of a list, an array or a data frame. Returns the id they are kept under."""
        import uuid

        correlation = user_correlation_id or str(uuid.uuid4())
        folder = os.environ.get(FOLDER)
        if not folder:
            return correlation
        names, given = _table(input_data)
        names = self._names or names
        now = datetime.datetime.now(datetime.timezone.utc)
        place = os.path.join(folder, *self._place, now.strftime("%Y"), now.strftime("%m"), now.strftime("%d"))
        os.makedirs(place, exist_ok=True)
        text = io.StringIO()
        writer = csv.writer(text)
        path = os.path.join(place, "data.csv")
        rows = [list(row) for row in given]
        if not os.path.exists(path):
            columns = names or [f"column{at}" for at in range(len(rows[0]) if rows else 0)]
            writer.writerow(["$aml_dc_correlation_id", "$aml_dc_timestamp", *columns])
        for row in rows:
            writer.writerow([correlation, now.isoformat(), *row])
        with open(path, "a", newline="", encoding="utf-8") as file:
            file.write(text.getvalue())  # in one piece: other replicas write here too
        return correlation


def _as_folder(name: str) -> str:
    kept = "".join(each if each.isalnum() or each in _ALLOWED else "_" for each in str(name))
    return kept if kept.strip(".") else "_"


def _table(data: Any) -> tuple[list[str] | None, Iterable[Iterable[Any]]]:
    """Names and rows; a single row or value is a table too."""
    if hasattr(data, "columns") and hasattr(data, "values"):
        return [str(each) for each in data.columns], data.values.tolist()
    if hasattr(data, "tolist"):
        data = data.tolist()
    if not isinstance(data, (list, tuple)):
        return None, [[data]]
    if not all(isinstance(each, (list, tuple)) for each in data):
        return None, [list(data)]
    return None, data
