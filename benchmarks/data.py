"""Data: 10,000 files of 10 KB and one file of 1 GB to and from the default datastore, in a run, and from the web."""

from __future__ import annotations

import http.server
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from home import Home
from measure import Asked, Clock, Figure, Options, Reading, alone, family_cpu
from servers import FilesHandler

from lapis.files import web_cache
from lapis.files.layout import lay_out_files
from lapis.files.web_cache import WebCache
from lapis.sdk.config.script_run_config import ScriptRunConfig
from lapis.sdk.data.file_dataset import FileDatasetFactory

# `--scale 0.1`: a tenth of the files, and of the large file
SCALE = float(sys.argv.pop(sys.argv.index("--scale") + 1)) if "--scale" in sys.argv else 1.0
if "--scale" in sys.argv:
    sys.argv.remove("--scale")
FILES = max(10, int(10_000 * SCALE))
SIZE = 10_000
LARGE = max(1 << 20, int(1e9 * SCALE))
ROUNDS = 3
STREAM = 20_000_000  # bytes in a second that the server of the measurement gives to one connection
WEB_FILE = max(32 << 20, int(256e6 * SCALE))


def measure(options: Options) -> list[Figure]:
    with Home() as home:
        small, large = _many_files(home.work / "small"), _one_file(home.work / "large")
        return [
            *_copies(home, small, f"{FILES:,} files of 10 KB"),
            *_copies(home, large, f"one file of {LARGE / 1e9:g} GB"),
            _second_use(home, small),
            _from_the_web(home),
        ]


# -- to and from the default datastore


def _copies(home: Home, source: Path, what: str) -> list[Figure]:
    store, names = home.experiment().workspace.get_default_datastore(), itertools.count()
    up: dict[str, list[Clock]] = {"Lapis": [], "bare: cp -r": []}
    down: dict[str, list[Clock]] = {"Lapis": [], "bare: cp -r": []}
    for number in range(ROUNDS):
        place, target = f"{source.name}-{number}", home.work / f"down-{next(names)}"
        copy = home.work / f"copy-{next(names)}"
        turns: list[tuple[dict[str, list[Clock]], str, Callable[[], object]]] = [
            (up, "Lapis", lambda p=place: store.upload(str(source), p, show_progress=False)),  # type: ignore[misc]
            (up, "bare: cp -r", lambda c=copy: _run("cp", "-r", str(source), str(c))),  # type: ignore[misc]
            (down, "Lapis", lambda t=target, p=place: store.download(str(t), p, show_progress=False)),  # type: ignore[misc]
            (down, "bare: cp -r", lambda c=copy: _run("cp", "-r", str(c), f"{c}-again")),  # type: ignore[misc]
        ]
        for clocks, name, take in turns if number % 2 == 0 else [turns[1], turns[0], turns[3], turns[2]]:
            os.sync()  # what the one before wrote is not written at this one's expense
            clocks[name].append(_timed(take))
        for folder in (target, copy, Path(f"{copy}-again"), Path(store._folder, place)):
            shutil.rmtree(folder)
    return [
        Figure(f"upload {what}", "s", _readings(up), Asked(times_bare=1.5)),
        Figure(f"download {what}", "s", _readings(down), Asked(times_bare=1.5)),
    ]


def _second_use(home: Home, source: Path) -> Figure:
    """What the data of a run adds to it when it was used before: laying out the four web files that a run mounts."""
    experiment = home.experiment()
    with _serving(home.work / "served", files=4, size=10 << 20) as urls:
        dataset = FileDatasetFactory.from_files(urls)
        script = home.source("import sys; print(sys.argv[1])")
        run = experiment.submit(ScriptRunConfig(script, "train.py", arguments=[dataset.as_mount()]))
        run.wait_for_completion()  # the first use
        samples = []
        for number in range(10):
            files = dataset._files()
            with Clock() as clock:
                lay_out_files(files, str(home.work / f"laid-{number}"))
            samples.append(clock)
    readings = [Reading("Lapis", [c.wall for c in samples], [c.cpu for c in samples])]
    return Figure("four web files of 10 MB mounted again", "s", readings, Asked(most=0.05))


# -- from the web


def _from_the_web(home: Home) -> Figure:
    """A rate, and the bare one is a single stream: three times as fast is a third of the bare."""
    ours, one = [], []
    with _serving(home.work / "web", files=1, size=WEB_FILE, per_second=STREAM) as urls:
        for number in range(ROUNDS):
            for name, samples in (("ours", ours), ("one", one)):
                folder = str(home.work / f"web-{name}-{number}")
                pieces, web_cache.PIECE = web_cache.PIECE, (web_cache.PIECE if name == "ours" else 1 << 62)
                with Clock() as clock:
                    WebCache(folder).fetch(urls[0])
                web_cache.PIECE = pieces
                shutil.rmtree(folder)
                samples.append(WEB_FILE / 1e6 / clock.wall)
    faster = statistics.median(ours) / statistics.median(one)
    note = f"a server of {STREAM / 1e6:.0f} MB/s for each stream; {faster:.1f} times one stream, at least 3 asked for"
    readings = [Reading("Lapis", ours, note=note), Reading("bare: one stream", one, bare=True)]
    return Figure(f"a web file of {WEB_FILE / 1e6:.0f} MB, {web_cache.STREAMS} streams", "MB/s", readings,
                  Asked(times_bare=1 / 3))  # fmt: skip


@contextmanager
def _serving(folder: Path, files: int, size: int, per_second: int | None = None) -> Iterator[list[str]]:
    """A web server in a process of its own, so that it does not share our interpreter's lock."""
    folder.mkdir()
    for number in range(files):
        with open(folder / f"{number}.bin", "wb") as file:
            for _ in range(0, size, 1 << 20):
                file.write(os.urandom(1 << 20))
            file.truncate(size)
    command = [sys.executable, __file__, "--serve", str(folder), str(per_second or 0)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        yield [f"http://127.0.0.1:{port}/{number}.bin" for number in range(files)]
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def serve(folder: str, per_second: int) -> None:
    class Handler(FilesHandler):
        def send(self, path: str, offset: int, left: int) -> None:
            began, sent, step = time.monotonic(), 0, per_second // 50 if per_second else 1 << 20
            with open(path, "rb") as file:
                while left:
                    count = os.sendfile(self.connection.fileno(), file.fileno(), offset, min(step, left))
                    offset, left, sent = offset + count, left - count, sent + count
                    if per_second:
                        time.sleep(max(0.0, sent / per_second - (time.monotonic() - began)))

    Handler.folder = folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    print(server.server_address[1], flush=True)


# -- what is copied


def _many_files(place: Path) -> Path:
    for number in range(FILES):
        file = place / f"part{number % 100}" / f"{number}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(SIZE))
    return place


def _one_file(place: Path) -> Path:
    place.mkdir()
    with open(place / "large.bin", "wb") as file:
        for _ in range(0, LARGE, 1 << 20):
            file.write(os.urandom(1 << 20))
        file.truncate(LARGE)
    return place


def _readings(clocks: dict[str, list[Clock]]) -> list[Reading]:
    return [
        Reading(name, [c.wall for c in each], [c.cpu for c in each], bare=name.startswith("bare"))
        for name, each in clocks.items()
    ]


def _timed(take: Callable[[], object]) -> Clock:
    with Clock(family_cpu) as clock:
        take()
    return clock


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        alone(measure)
