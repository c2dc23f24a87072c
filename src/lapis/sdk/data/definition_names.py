"""What a dataset is made by, step by step, in the words that SDK v1 shows."""

from __future__ import annotations

from typing import Any, Mapping

_READERS = {
    "delimited": ["ParseDelimited", "DropColumns", "SetColumnTypes"],
    "parquet": ["ReadParquetFile", "DropColumns"],
    "json_lines": ["ParseJsonLines", "DropColumns"],
}
_STEPS = {
    "drop": "DropColumns",
    "filter": "Filter",
    "keep": "KeepColumns",
    "sample": "Sample",
    "skip": "Skip",
    "split": "RandomSplit",
    "take": "Take",
}


def step_names(definition: Mapping[str, Any]) -> list[str]:
    """`["GetDatastoreFiles", "ParseDelimited", ...]` for a definition."""
    sources, reader = definition.get("sources") or [], definition.get("reader") or {}
    if any("query" in source for source in sources):
        names = ["GetDatastoreQuery"]
    else:
        names = ["GetDatastoreFiles" if any(source.get("datastore") for source in sources) else "GetFiles"]
        if reader.get("partition_format") or definition.get("partition_format"):
            names.append("AddColumnsFromPartitionFormat")
    names += _READERS.get(str(reader.get("format")), [])
    return names + [_STEPS.get(step["op"], step["op"]) for step in definition.get("steps", [])]
