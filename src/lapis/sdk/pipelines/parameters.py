"""What a pipeline leaves open until it is submitted."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from lapis.domain import limits
from lapis.domain.data import check_reference_name
from lapis.errors import InvalidPipeline
from lapis.sdk.data.abstract_dataset import AbstractDataset
from lapis.sdk.data.data_reference import DataPath

VARIABLE = "AML_PARAMETER_"  # and the parameter's name: the variable that a script finds it in
_PLAIN = (str, int, float, bool)


class PipelineParameter:
    """A value that each submission may choose: text, a number, a truth, a DataPath or a dataset.

    Put it into `arguments`, into `params`, into `DatasetConsumptionConfig(name, parameter)`, or for a DataPath into
    `inputs` as `(parameter, DataPathComputeBinding())`.
    """

    def __init__(self, name: str, default_value: Any) -> None:
        self.name = check_reference_name(name)
        self.default_value = default_value
        if default_value is not None and not _is_known(default_value):
            raise InvalidPipeline(
                f"The default of parameter '{name}' must be text, a number, a truth, a DataPath or a dataset, not "
                f"{type(default_value).__name__}."
            )

    def __str__(self) -> str:
        return f"PipelineParameter_Name:{self.name}_Default:{self.default_value}"

    __repr__ = __str__


def _is_known(value: Any) -> bool:
    from lapis.sdk.pipelines.bindings import PipelineDataset

    return isinstance(value, (*_PLAIN, DataPath, AbstractDataset, PipelineDataset))


def assigned(known: Iterable[PipelineParameter], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The value of each parameter: as given, else its default. Raises for what nobody knows or cannot be."""
    by_name: dict[str, PipelineParameter] = {}
    for each in known:
        other = by_name.setdefault(each.name, each)
        if other is not each and other.default_value != each.default_value:
            raise InvalidPipeline(
                f"Two parameters of the pipeline are named '{each.name}' and have the defaults "
                f"{limits.shown(other.default_value)} and {limits.shown(each.default_value)}. Rename one of them."
            )
    unknown = sorted(set(given or {}) - set(by_name))
    if unknown:
        there = ", ".join(sorted(by_name)) or "none"
        raise InvalidPipeline(f"The pipeline has no parameter '{unknown[0]}'. Known: {there}.")
    values = {}
    for name, parameter in by_name.items():
        value = (given or {}).get(name, parameter.default_value)
        if value is None:
            raise InvalidPipeline(
                f"Parameter '{name}' has no default and was given no value: pipeline_parameters={{'{name}': ...}}."
            )
        values[name] = _as_kind_of(name, parameter.default_value, value)
    return values


def _as_kind_of(name: str, default: Any, value: Any) -> Any:
    """`value`, if it is of the default's kind. Numbers may come as text, as they do over the wire."""
    if default is None or type(value) is type(default):
        return value
    if isinstance(default, bool):
        if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
    elif isinstance(default, int) and not isinstance(value, bool):
        if isinstance(value, (int, str)):
            try:
                return int(value)
            except ValueError:
                pass
    elif isinstance(default, float) and not isinstance(value, bool):
        if isinstance(value, (int, float, str)):
            try:
                return float(value)
            except ValueError:
                pass
    elif isinstance(default, str) and isinstance(value, _PLAIN):
        return str(value)
    elif not isinstance(default, _PLAIN) and _is_known(value) and not isinstance(value, _PLAIN):
        if isinstance(default, DataPath) == isinstance(value, DataPath):
            return value
    raise InvalidPipeline(
        f"Parameter '{name}' is {_kind(default)}, as its default says, and cannot be {limits.shown(value)}."
    )


def _kind(value: Any) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return words.get(type(value)) or ("a DataPath" if isinstance(value, DataPath) else "a dataset")
