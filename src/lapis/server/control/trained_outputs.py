"""What a search passes on in a pipeline: the metrics of all its runs, and files of the best one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from lapis.domain.job import Output
from lapis.domain.pipeline import TrainedOutput
from lapis.domain.run import RunRecord
from lapis.machine.whole_files import replacing
from lapis.server.control.runs import Runs
from lapis.server.control.stores import Stores

_BEST = "best_child_run_id"


def write_trained(
    stores: Stores, runs: Runs, search: RunRecord, wanted: Iterable[TrainedOutput], outputs: Iterable[Output]
) -> None:
    """May be repeated. What is not there is not written, and told as an output that was never written."""
    places = {each.name: each.place for each in outputs}
    for each in wanted:
        place = places[each.output]
        if not isinstance(place, str):
            continue  # refused when it was compiled
        if each.kind == "Metrics":
            _write(place, [json.dumps(_metrics(runs, search)).encode()])
            continue
        for path, pieces in _files_of_best(stores, search, each.file or "outputs"):
            _write(os.path.join(place, path) if path else place, pieces)


def _metrics(runs: Runs, search: RunRecord) -> dict[str, Any]:
    """By run and name, each as a list, as SDK v1 writes it."""
    found = runs.metrics(search.workspace_id, search.id, None, True, None)
    return {
        run_id: {name: value if isinstance(value, list) else [value] for name, value in metrics.items()}
        for run_id, metrics in found.items()
        if run_id != search.id
    }


def _files_of_best(stores: Stores, search: RunRecord, name: str) -> Iterator[tuple[str, Iterable[bytes]]]:
    """A file, under no name, or the files of a folder, by their path in it."""
    best, name = search.properties.get(_BEST), name.strip("/")
    if not best:
        return
    for file in stores.files.find(search.workspace_id, best):
        if file.name == name or file.name.startswith(name + "/"):
            yield file.name[len(name) + 1 :], stores.files.read(search.workspace_id, best, file)


def _write(path: str, pieces: Iterable[bytes]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with replacing(path) as part, open(part, "wb") as file:
        for piece in pieces:
            file.write(piece)
