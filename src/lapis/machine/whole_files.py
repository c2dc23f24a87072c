"""Files that are whole or not there: written beside their place, then moved into it in one step."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give a path to write to. What lies there becomes `path` when the block ends well, else it is removed."""
    draft = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.part"
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(draft)
        raise


def write(path: str, content: bytes, mode: int = 0o666) -> None:
    """Whatever happens meanwhile, who reads `path` finds what was there before or all of `content`."""
    with replacing(path) as draft:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
