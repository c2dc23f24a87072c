"""Runs the Python blocks of a page of documentation, top to bottom, as one program: `python page.py docs/runs.md`.

A comment in front of a block says when it is not run: `<!-- not run -->`. A block below a line that is nothing but a
file's name, such as "`train.py`:", is the content of that file, which is then written. A text block right after a block
is what it prints; `...` stands for anything.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

_FENCE = re.compile(
    r"^(?:<!-- (?P<remark>not run) -->\n|`(?P<file>[^`\n]+)`:\n\n)?"
    r"```(?:python|(?(file)csv|python))\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<prints>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    line: int  # of the page, where the code begins
    code: str
    remark: str
    file: str
    prints: str | None

    @property
    def runs(self) -> bool:
        return not self.remark and not self.file


def blocks(text: str) -> list[Block]:
    return [
        Block(
            text.count("\n", 0, found.start("code")) + 1,
            found["code"],
            found["remark"] or "",
            found["file"] or "",
            found["prints"],
        )
        for found in _FENCE.finditer(text)
    ]


def fits(prints: str, printed: str) -> bool:
    """Whether what was printed is what the page shows, spaces at the ends of lines aside."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(prints).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def run(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text()):
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.code)
        if not block.runs:
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            # the empty lines make a traceback name the line of the page
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)
        if block.prints is not None and not fits(block.prints, said.getvalue()):
            sys.exit(f"{page}:{block.line} shows\n{block.prints}\nbut prints\n{said.getvalue()}")


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve())
