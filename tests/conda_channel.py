"""A conda channel in a folder: small real packages, and the list of them that a solver reads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PYTHON = ".".join(map(str, sys.version_info[:3]))
SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


class Channel:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._packages: dict[str, dict[str, dict[str, Any]]] = {"linux-64": {}, "noarch": {}}
        for subdir in self._packages:
            (folder / subdir).mkdir(parents=True)
        self._list()

    @property
    def address(self) -> str:
        return self.folder.as_uri()

    def add(self, name: str, number: str, files: dict[str, str], depends: Sequence[str] = ()) -> None:
        """A package with these files. One whose text begins with '-> ' is a link to what follows."""
        about = {
            "name": name, "version": number, "build": "0", "build_number": 0, "depends": list(depends),
            "subdir": "linux-64", "arch": "x86_64", "platform": "linux", "timestamp": 1700000000000,
        }  # fmt: skip
        paths = [_path(path, text) for path, text in files.items()]
        inside = {
            "info/index.json": json.dumps(about),
            "info/files": "".join(f"{path}\n" for path in files),
            "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}),
            **files,
        }
        packed = self.folder / "linux-64" / f"{name}-{number}-0.tar.bz2"
        with tarfile.open(packed, "w:bz2") as archive:
            for path, text in inside.items():
                archive.addfile(*_member(path, text))
        content = packed.read_bytes()
        sums = {"md5": hashlib.md5(content).hexdigest(), "sha256": hashlib.sha256(content).hexdigest()}
        self._packages["linux-64"][packed.name] = {**about, **sums, "size": len(content)}
        self._list()

    def add_python(self) -> None:
        """This very Python, as conda would lay it out: a link, and where its library is."""
        real = Path(sysconfig.get_config_var("BINDIR")) / f"python{sys.version_info.major}.{sys.version_info.minor}"
        config = f"home = {real.parent}\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
        self.add("python", PYTHON, {"bin/python": f"-> {real}", "pyvenv.cfg": config, f"{SITE}/here.txt": ""})

    def _list(self) -> None:
        for subdir, packages in self._packages.items():
            body = {"info": {"subdir": subdir}, "packages": packages, "packages.conda": {}, "repodata_version": 1}
            (self.folder / subdir / "repodata.json").write_text(json.dumps(body))


def _path(path: str, text: str) -> dict[str, Any]:
    if text.startswith("-> "):
        empty = hashlib.sha256(b"").hexdigest()
        return {"_path": path, "path_type": "softlink", "sha256": empty, "size_in_bytes": 0}
    content = text.encode()
    return {
        "_path": path, "path_type": "hardlink", "sha256": hashlib.sha256(content).hexdigest(),
        "size_in_bytes": len(content),
    }  # fmt: skip


def _member(path: str, text: str) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    member = tarfile.TarInfo(path)
    if text.startswith("-> "):
        member.type, member.linkname = tarfile.SYMTYPE, text[3:]
        return member, None
    content = text.encode()
    member.size = len(content)
    member.mode = 0o755 if os.path.dirname(path) == "bin" else 0o644
    return member, io.BytesIO(content)
