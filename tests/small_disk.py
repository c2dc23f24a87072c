"""A disk that a test can fill: a home on a file system of its own, of a few megabytes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapis.testing import Home


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Until not one byte more goes in, however it comes; again after others have made some room."""
        with open(self._ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """As the kernel does when it finds a disk to be damaged. Needs that nobody has a file open for writing."""
        self._remount("ro")
        try:
            yield
        finally:
            self._remount("rw")

    def _remount(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.path)], check=True)


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    """Skips where nothing can be mounted: that is up to the machine."""
    point = Path(tempfile.mkdtemp(prefix="lapis-disk-"))
    options = f"size={megabytes}m,mode=0700"
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "lapis", str(point)], capture_output=True, text=True)
    if made.returncode != 0:
        point.rmdir()
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield SmallDisk(point)
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)
        point.rmdir()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Home, SmallDisk]]:
    """A home on a disk of 40 MB, whose owner works on another one."""
    monkeypatch.chdir(tmp_path)
    with small_disk(40) as disk:
        home = Home(disk.path / "home")
        home.path.mkdir()
        monkeypatch.setenv("LAPIS_HOME", str(home.path))
        try:
            yield home, disk
        finally:
            disk.free()
            home.end()


def is_full(path: Path) -> bool:
    """Whether a byte more goes in there."""
    probe = path / f".probe-{os.getpid()}"
    try:
        probe.write_bytes(b"x" * 4096)
        return False
    except OSError:
        return True
    finally:
        probe.unlink(missing_ok=True)
