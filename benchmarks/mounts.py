"""Mounts: remote files streamed while they are read, beside the same files downloaded to the cache first.

From a web server on loopback, as fast as it can and with the limits of a store afar: 200 MB/s for all connections
together, 20 ms before each answer. The table of docs/decisions/0011-mount-by-download-or-stream.md.
"""

from __future__ import annotations

import http.server
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Clock, Figure, Options, Reading, adopt_orphans, alone, family_cpu
from servers import FilesHandler

# `--scale 0.1`: a tenth of everything
SCALE = float(sys.argv.pop(sys.argv.index("--scale") + 1)) if "--scale" in sys.argv else 1.0
if "--scale" in sys.argv:
    sys.argv.remove("--scale")
ROUNDS = 3
LARGE = int(1e9 * SCALE)  # bytes of one file
MANY, EACH = max(10, int(500 * SCALE)), 100_000
FAR = (200_000_000, 0.02)  # bytes a second, seconds before an answer
NEAR = (0, 0.0)
READ, WORK = 1 << 20, 0.01  # bytes read at once; seconds that a script works on them


def measure(options: Options) -> list[Figure]:
    adopt_orphans()
    root = Path(tempfile.mkdtemp(prefix="mounts-"))
    _write(root / "served" / "large.bin", LARGE)
    for number in range(MANY):
        _write(root / "served" / f"{number}.bin", EACH)
    large, many = ["large.bin"], [f"{number}.bin" for number in range(MANY)]
    figures = []
    for place, limits in (("200 MB/s, 20 ms", FAR), ("no limits", NEAR)):
        with _serving(root / "served", *limits) as url:
            for what, files, how in (
                (f"one file of {LARGE / 1e9:g} GB, read once", large, "once"),
                ("the same, 10 ms of work on each MB", large, "work"),
                ("1 % of it, at random", large, "part"),
                (f"{MANY:,} files of 100 KB, in order", many, "once"),
                (f"{MANY:,} files of 100 KB, shuffled", many, "shuffled"),
            ):
                if how in ("once", "part") or limits == FAR:
                    figures += _compare(root, f"{what}; {place}", [url + name for name in files], how)
    shutil.rmtree(root)
    return figures


def _compare(root: Path, what: str, urls: list[str], how: str) -> list[Figure]:
    """The first use and the second one, from the start of the mount to the first byte and to the last."""
    found: dict[str, dict[str, list[tuple[float, float, float]]]] = {"first use": {}, "second use": {}}
    for number in range(ROUNDS):
        for mode in ("stream", "download") if number % 2 else ("download", "stream"):
            home = root / f"home-{mode}"
            for use in found.values():
                use.setdefault(mode, []).append(_use(home, mode, urls, how))
            if mode == "stream" and how == "once":
                found["second use"].setdefault("stream, then download", []).append(_use(home, "download", urls, how))
            shutil.rmtree(home)
    figures = []
    for use, modes in found.items():
        for place, until in enumerate(("first byte", "end")):
            readings = [
                Reading(mode, [each[place] for each in uses], [each[2] for each in uses])
                for mode, uses in sorted(modes.items(), reverse=True)
            ]
            figures.append(Figure(f"{what}; {use}: {until}", "s", readings))
    return figures


def _use(home: Path, mode: str, urls: list[str], how: str) -> tuple[float, float, float]:
    environment = {**os.environ, "LAPIS_HOME": str(home), "LAPIS_MOUNT": mode}
    command = [sys.executable, __file__, "--use", how]
    with Clock(family_cpu) as clock:
        done = subprocess.run(command, input=json.dumps(urls), env=environment, stdout=subprocess.PIPE, text=True)
    first, end = json.loads(done.stdout)
    return first, end, clock.cpu


def use(how: str) -> None:
    """What a script does: mount, read, and say when the first byte and the last one had come."""
    from lapis.sdk.data.file_dataset import FileDatasetFactory

    dataset = FileDatasetFactory.from_files(json.load(sys.stdin), validate=False)
    began, first = time.perf_counter(), 0.0
    with dataset.mount() as mounted:
        paths = [str(mounted.mount_point) + path for path in dataset.to_path()]
        if how == "shuffled":
            random.Random(0).shuffle(paths)
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                size = os.path.getsize(path)
                spots = range(0, size, READ)
                if how == "part":
                    spots = random.Random(0).sample(spots, max(1, len(spots) // 100))  # type: ignore[assignment]
                for spot in spots:
                    file.seek(spot)
                    assert file.read(READ)
                    first = first or time.perf_counter() - began
                    if how == "work":
                        time.sleep(WORK)
        end = time.perf_counter() - began
    print(json.dumps([first, end]))


def _write(path: Path, size: int) -> None:
    path.parent.mkdir(exist_ok=True)
    with open(path, "wb") as file:
        for at in range(0, size, 1 << 20):
            file.write(os.urandom(min(1 << 20, size - at)))


@contextmanager
def _serving(folder: Path, per_second: int, delay: float) -> Iterator[str]:
    command = [sys.executable, __file__, "--serve", str(folder), str(per_second), str(delay)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def serve(folder: str, per_second: int, delay: float) -> None:
    lock, free_at = threading.Lock(), [0.0]

    def wait_for(count: int) -> None:
        """Until the line, which all connections share, has carried so many bytes more."""
        with lock:
            free_at[0] = max(free_at[0], time.monotonic()) + count / per_second
            until = free_at[0]
        time.sleep(max(0.0, until - time.monotonic()))

    class Handler(FilesHandler):
        def send(self, path: str, offset: int, left: int) -> None:
            with open(path, "rb") as file:
                while left:
                    count = os.sendfile(self.connection.fileno(), file.fileno(), offset, min(1 << 18, left))
                    offset, left = offset + count, left - count
                    if per_second:
                        wait_for(count)

    Handler.folder, Handler.delay = folder, delay
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket.listen(512)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    elif sys.argv[1:2] == ["--use"]:
        use(sys.argv[2])
    else:
        alone(measure)
