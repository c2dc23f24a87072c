"""Words for how files are read as tables: types of columns, headers, encodings."""

from __future__ import annotations

from enum import Enum
from typing import Any, Mapping

from lapis.errors import NotThereYet, UserErrorException

STRING, BOOL, LONG, FLOAT, DATETIME = "string", "bool", "long", "float", "datetime"


class DataType:
    """The type that a column is read as: `set_column_types={'age': DataType.to_long()}`."""

    def __init__(self, kind: str, **options: Any) -> None:
        self._definition = dict(options, type=kind)

    @staticmethod
    def to_string() -> DataType:
        return DataType(STRING)

    @staticmethod
    def to_bool() -> DataType:
        return DataType(BOOL)

    @staticmethod
    def to_long() -> DataType:
        return DataType(LONG)

    @staticmethod
    def to_float(decimal_mark: str = ".") -> DataType:
        if decimal_mark not in (".", ","):
            raise UserErrorException(f"decimal_mark is '.' or ',', not {decimal_mark!r}.")
        return DataType(FLOAT, decimal_mark=decimal_mark)

    @staticmethod
    def to_datetime(formats: Any = None) -> DataType:
        """Dates and times by the formats of `datetime.strptime`, the first that fits; without one the usual ones."""
        chosen = [formats] if isinstance(formats, str) else list(formats or [])
        wrong = [each for each in chosen if not isinstance(each, str) or "%" not in each]
        if wrong:
            raise UserErrorException(f"{wrong[0]!r} is no format of a date. One looks like '%d/%m/%Y %H:%M'.")
        return DataType(DATETIME, formats=chosen)

    @staticmethod
    def to_stream(workspace: Any, escaped: bool = False) -> DataType:
        raise NotThereYet("DataType.to_stream")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and other._definition == self._definition

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"DataType.to_{self._definition['type']}()"


class PromoteHeadersBehavior(Enum):
    """Which lines of files with separated columns are names."""

    NO_HEADERS = 0
    ONLY_FIRST_FILE_HAS_HEADERS = 1
    COMBINE_ALL_FILES_HEADERS = 2
    ALL_FILES_HAVE_SAME_HEADERS = 3


class SkipLinesBehavior(Enum):
    NO_ROWS = 0
    FROM_FIRST_FILE_ONLY = 1
    FROM_ALL_FILES = 2


class FileEncoding(Enum):
    UTF8 = 0
    ISO88591 = 1
    LATIN1 = 2
    ASCII = 3
    UTF16 = 4
    UTF32 = 5
    UTF8BOM = 6
    WINDOWS1252 = 7


class FileType(Enum):
    GENERIC_CSV = "GenericCSV"
    GENERIC_CSV_NO_HEADER = "GenericCSVNoHeader"
    GENERIC_TSV = "GenericTSV"
    GENERIC_TSV_NO_HEADER = "GenericTSVNoHeader"
    ZIP = "Zip"
    UNKNOWN = "Unknown"
    BINARY, CSV, EXCEL, JSON = "Binary", "Csv", "Excel", "Json"
    PARQUET, TSV, TXT = "Parquet", "Tsv", "Txt"


class HistogramCompareMethod(Enum):
    WASSERSTEIN = 0
    ENERGY = 1


# What SDK v1 calls an encoding, and what Python does.
ENCODINGS = {
    "utf8": "utf-8",
    "iso88591": "iso-8859-1",
    "latin1": "latin-1",
    "ascii": "ascii",
    "utf16": "utf-16",
    "utf32": "utf-32",
    "utf8bom": "utf-8-sig",
    "windows1252": "cp1252",
}


def column_types(types: Any) -> dict[str, dict[str, Any]]:
    """`set_column_types` as plain values."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise UserErrorException("set_column_types is a dictionary: {'column': DataType.to_long()}.")
    for name, kind in types.items():
        if not isinstance(name, str) or not isinstance(kind, DataType):
            raise UserErrorException(
                f"set_column_types[{name!r}] must be a DataType, such as DataType.to_long(), not {kind!r}."
            )
    return {name: dict(kind._definition) for name, kind in types.items()}


def header_behaviour(header: Any) -> str:
    if isinstance(header, bool):
        return "ALL_FILES_HAVE_SAME_HEADERS" if header else "NO_HEADERS"
    if isinstance(header, PromoteHeadersBehavior):
        return header.name
    if isinstance(header, int) and header in range(4):
        return PromoteHeadersBehavior(header).name
    known = ", ".join(each.name for each in PromoteHeadersBehavior)
    raise UserErrorException(f"header is True, False or one of PromoteHeadersBehavior ({known}), not {header!r}.")


def encoding_name(encoding: Any) -> str:
    name = encoding.name if isinstance(encoding, FileEncoding) else encoding
    plain = name.lower().replace("-", "").replace("_", "") if isinstance(name, str) else ""
    if plain not in ENCODINGS:
        raise UserErrorException(f"Encoding {encoding!r} is not known. Known: {', '.join(ENCODINGS)}.")
    return plain
