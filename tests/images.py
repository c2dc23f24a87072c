"""Makes an image that holds this very Python and nothing else, so that containers can be tested without a registry."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
import tarfile
import tempfile

from lapis.environments import uv

NAME = "lapis-test/python:local"


def make_python_image(runtime: str) -> str:
    """The name of an image in which `python3` is the interpreter that runs the tests."""
    if subprocess.run([runtime, "image", "inspect", NAME], capture_output=True).returncode == 0:
        return NAME
    prefix, version = sys.base_prefix, f"python{sys.version_info[0]}.{sys.version_info[1]}"
    binary = os.path.realpath(os.path.join(prefix, "bin", version))
    modules = os.path.join(prefix, "lib", version)
    needed = {binary, *glob.glob(os.path.join(prefix, "lib", "libpython*.so*"))}
    for file in [binary, uv.find(), *glob.glob(os.path.join(modules, "lib-dynload", "*.so"))]:
        needed |= _libraries(file)
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        with tarfile.open(archive.name, "w") as tar:
            for path in sorted(needed):
                tar.add(os.path.realpath(path), arcname=path.lstrip("/"))
            tar.add(modules, arcname=modules.lstrip("/"), filter=_small)
            link = tarfile.TarInfo("usr/bin/python3")
            link.type, link.linkname = tarfile.SYMTYPE, binary
            tar.addfile(link)
            for folder in ("tmp", "etc"):
                entry = tarfile.TarInfo(folder)
                entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
                tar.addfile(entry)
        subprocess.run([runtime, "import", archive.name, NAME], check=True, capture_output=True)
    return NAME


def _libraries(file: str) -> set[str]:
    said = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
    return {word for word in said.split() if word.startswith("/") and os.path.exists(word)}


def _small(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = ("/test", "/site-packages", "/idlelib", "/__pycache__")
    return None if any(part in f"/{entry.name}" for part in left_out) else entry
