"""What can be logged, how one logged thing looks as a journal line, and how lines become what `get_metrics` gives."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from lapis.domain.limits import NAME, STEP, WHOLE, check_depth
from lapis.errors import UserErrorException

SCALAR, LIST, ROW, TABLE, REFERENCE = "scalar", "list", "row", "table", "reference"
KINDS = frozenset({SCALAR, LIST, ROW, TABLE, REFERENCE})
NAME_LIMIT = NAME
DEPTH_LIMIT = 16  # of lists in lists
DIGIT_LIMIT = 1000  # of a whole number; readers refuse far longer ones
ARTIFACT_PREFIX = "aml://artifactId/ExperimentRun/dcid."

# The plots that Azure draws from a JSON document with these fields.
PLOT_SCHEMAS = {
    "confusion_matrix": ("class_labels", "matrix"),
    "accuracy_table": ("probability_tables", "percentile_tables", "probability_thresholds",
                       "percentile_thresholds", "class_labels"),
    "predictions": ("bin_averages", "bin_errors", "bin_counts", "bin_edges"),
    "residuals": ("bin_edges", "bin_counts"),
}  # fmt: skip


class Stretch(NamedTuple):
    """Values of one series and one kind, one after the other."""

    kind: str
    values: Sequence[Any]


class Point(NamedTuple):
    """One logged thing. `run_id` is empty for the run whose journal it stands in, else one of its descendants."""

    kind: str
    at: float
    name: str
    value: Any
    step: int | None = None
    run_id: str = ""


_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def to_line(point: Point) -> bytes:
    return (_encode(point) + "\n").encode("utf-8", "surrogatepass")


def parse_lines(text: bytes) -> tuple[list[Point], int]:
    """Points of whole journal lines, and how many lines could not be read (a torn write leaves one)."""
    lines = [line for line in text.split(b"\n") if line]
    try:
        rows = json.loads(b"[" + b",".join(lines) + b"]")
        points = [Point(*row) for row in rows]
        if len(rows) == len(lines) and all(is_storable(point) for point in points):
            return points, 0
    except (ValueError, TypeError, RecursionError):
        pass
    return _parse_one_by_one(lines)


def _parse_one_by_one(lines: list[bytes]) -> tuple[list[Point], int]:
    points = []
    for line in lines:
        try:
            point = Point(*json.loads(line))
        except (ValueError, TypeError, RecursionError):
            continue
        if is_storable(point):
            points.append(point)
    return points, len(lines) - len(points)


_LATEST = 2.0**40  # seconds since 1970: tens of thousands of years
_VALUE_TYPES = {LIST: list, ROW: dict, TABLE: dict, REFERENCE: str}


def is_storable(point: Point) -> bool:
    return (
        type(point.kind) is str
        and point.kind in KINDS
        and isinstance(point.value, _VALUE_TYPES.get(point.kind, object))
        and (type(point.at) is float or type(point.at) is int)
        and 0 <= point.at <= WHOLE
        and type(point.name) is str
        and 0 < len(point.name) <= NAME_LIMIT
        and not _UNPRINTABLE.search(point.name)
        and (point.step is None or (type(point.step) is int and -STEP - 1 <= point.step <= STEP))
        and type(point.run_id) is str
        and (point.kind == SCALAR or point.kind == REFERENCE or _is_shallow(point.value))
    )


def _is_shallow(value: Any) -> bool:
    try:
        check_depth("value", value)
    except UserErrorException:
        return False
    return True


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # control characters, and halves of characters
_HUGE = 10**DIGIT_LIMIT


def check_name(name: Any) -> str:
    if type(name) is not str:
        if not isinstance(name, str):
            raise UserErrorException(f"A metric's name must be text, not {type(name).__name__} ({name!r}).")
        name = str(name)  # numpy.str_
    if not name.strip() or len(name) > NAME_LIMIT or _UNPRINTABLE.search(name):
        raise UserErrorException(
            f"Metric name {name[:80]!r} cannot be used: 1 to {NAME_LIMIT} printable characters are allowed."
        )
    return str(name)


def check_step(name: str, step: Any) -> int:
    try:
        whole = int(step)
        if whole == step and -(2**63) <= whole < 2**63:
            return whole
    except (TypeError, ValueError, OverflowError):
        pass
    raise UserErrorException(f"Metric '{name}' cannot be logged at step {step!r}: a step is a whole number.")


def check_scalar(name: str, value: Any) -> Any:
    """A number, a text, a truth value or None, as plain Python; numpy's and the frameworks' scalars become plain."""
    kind = type(value)
    if kind is float or kind is str or kind is bool or value is None or (kind is int and -_HUGE < value < _HUGE):
        return value
    plain = _plain(value)
    if plain is _CANNOT or isinstance(plain, (list, tuple, dict, set)):
        what = f"a number of more than {DIGIT_LIMIT} digits" if kind is int else f"a value of type {kind.__name__}"
        raise UserErrorException(
            f"Metric '{name}' cannot store {what}. log() takes a number or a text; "
            "use log_list() for a list, log_row() or log_table() for columns."
        )
    return plain


def check_list(name: str, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or isinstance(values, Mapping):
        raise UserErrorException(f"Metric '{name}' needs a list of values for log_list(), not {type(values).__name__}.")
    plain = _plain(values)
    if plain is _CANNOT:
        raise UserErrorException(
            f"Metric '{name}' needs a list of numbers and texts for log_list(); this {type(values).__name__} is none."
        )
    items = plain if isinstance(plain, list) else [plain]
    return [item if isinstance(item, list) else check_scalar(name, item) for item in items]


def check_row(name: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    if not columns:
        raise UserErrorException(f"Metric '{name}' needs at least one column: log_row('{name}', x=1, y=2).")
    return {check_name(key): check_scalar(f"{name}.{key}", value) for key, value in columns.items()}


def check_table(name: str, columns: Any) -> dict[str, Any]:
    if not isinstance(columns, Mapping) or not columns:
        raise UserErrorException(
            f"Metric '{name}' needs a dictionary of columns for log_table(), such as {{'x': [1, 2], 'y': [3, 4]}}."
        )
    table = {}
    for key, values in columns.items():
        plain = _plain(values)
        if plain is _CANNOT:
            raise UserErrorException(
                f"Column '{key}' of metric '{name}' cannot be stored: {type(values).__name__} is neither a number, "
                "a text nor a list of them."
            )
        table[check_name(str(key))] = plain
    rows = {key: len(values) if isinstance(values, list) else 1 for key, values in table.items()}
    if len(set(rows.values())) > 1:
        lengths = ", ".join(f"'{key}' has {count}" for key, count in rows.items())
        raise UserErrorException(f"Metric '{name}' is no table: its columns differ in length ({lengths}).")
    return table


def check_plot(name: str, plot: str, value: Any) -> dict[str, Any]:
    """The JSON document of a confusion matrix, accuracy table, predictions or residuals."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise UserErrorException(f"Metric '{name}' was given text for log_{plot}() that is not JSON.") from None
    data = value.get("data", value) if isinstance(value, Mapping) else None
    missing = [key for key in PLOT_SCHEMAS[plot] if not isinstance(data, Mapping) or key not in data]
    if missing or data is None:
        raise UserErrorException(
            f"Metric '{name}' is not a {plot.replace('_', ' ')}: log_{plot}() needs a dictionary (or its JSON) with "
            f"{', '.join(PLOT_SCHEMAS[plot])}; missing: {', '.join(missing)}."
        )
    given = value if "schema_type" in value else {}
    plain: Any = _plain({"schema_type": plot, "schema_version": "1.0.0", **given, "data": data})
    if plain is _CANNOT:
        raise UserErrorException(
            f"Metric '{name}' cannot be stored: log_{plot}() takes numbers, texts and lists of them only."
        )
    return dict(plain)


def assemble(points: Iterable[Point]) -> dict[str, Any]:
    """What `Run.get_metrics` gives: one value or a list of them; rows and tables as columns."""
    by_name: dict[str, list[Stretch]] = {}
    for point in points:
        by_name.setdefault(point.name, []).append(Stretch(point.kind, [point.value]))
    return {name: assemble_series(stretches) for name, stretches in by_name.items()}


def assemble_series(stretches: Sequence[Stretch]) -> Any:
    """The same of all that was logged to one name."""
    kinds = {stretch.kind for stretch in stretches}
    count = sum(len(stretch.values) for stretch in stretches)
    if kinds <= {SCALAR, REFERENCE}:
        return stretches[0].values[0] if count == 1 else [value for each in stretches for value in each.values]
    if kinds == {ROW} and count == 1:
        return dict(stretches[0].values[0])
    if kinds <= {ROW, TABLE}:
        return _columns(stretches, count)
    mixed: list[Any] = []
    for kind, values in stretches:
        for value in values:
            mixed.extend(value if kind == LIST else [value])
    return mixed


def _columns(stretches: Sequence[Stretch], count: int) -> dict[str, list[Any]]:
    """Rows one below the other; a column that a row lacks has None there, so that columns stay aligned."""
    columns: dict[str, list[Any]] = {}
    length = 0
    for kind, value in ((stretch.kind, value) for stretch in stretches for value in stretch.values):
        block = {k: v if isinstance(v, list) and kind == TABLE else [v] for k, v in value.items()}
        height = max((len(v) for v in block.values()), default=0)
        for key in list(columns) + [k for k in block if k not in columns]:
            column = columns.setdefault(key, [None] * length)
            column.extend(block.get(key, []))
            if count > 1:
                column.extend([None] * (length + height - len(column)))
        length += height
    return columns


_CANNOT = object()


def _plain(value: Any, depth: int = 0) -> Any:
    """`value` as JSON-ready Python, or _CANNOT."""
    if value is None or type(value) in (bool, float, str):
        return value
    if depth > DEPTH_LIMIT:
        return _CANNOT
    if isinstance(value, Mapping):
        made = {str(key): _plain(item, depth + 1) for key, item in value.items()}
        return _CANNOT if any(item is _CANNOT for item in made.values()) else made
    if hasattr(value, "tolist") and callable(value.tolist):  # numpy scalars and arrays, pandas series, torch tensors
        return _plain(value.tolist(), depth + 1)
    if hasattr(value, "numpy") and callable(value.numpy):  # TensorFlow's eager tensors
        return _plain(value.numpy(), depth + 1)
    if isinstance(value, int):
        return int(value) if -_HUGE < value < _HUGE else _CANNOT
    if isinstance(value, (str, float)):
        return (str if isinstance(value, str) else float)(value)
    if isinstance(value, (bytes, bytearray)):
        return _CANNOT
    if hasattr(value, "__iter__"):
        items = [_plain(item, depth + 1) for item in value]
        return _CANNOT if any(item is _CANNOT for item in items) else items
    if hasattr(value, "__float__"):  # Decimal, Fraction
        return float(value)
    return _CANNOT


def number_of(value: Any) -> float | None:
    """The number to draw and compare, or None for what is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return None if math.isnan(number) else number
