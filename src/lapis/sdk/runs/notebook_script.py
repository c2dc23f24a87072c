"""Runs a notebook as a script: `python -m lapis.sdk.runs.notebook_script train.ipynb --lr 0.1`.

Its code cells run one after the other in one namespace, by IPython where the environment has it. Without it the cells
are plain Python: `!command` goes to the shell, and magics that only concern the display are passed over.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
from typing import Any, Callable

_PASSED_OVER = ("%matplotlib", "%load_ext", "%autoreload", "%config", "%%time", "%%capture", "%pylab", "%reload_ext")


def main(arguments: list[str]) -> None:
    path = arguments[0]
    sys.argv = arguments
    os.environ.setdefault("MPLBACKEND", "Agg")  # plots are drawn and shown to nobody
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    run = _by_ipython() or _plainly()
    for number, cell in enumerate(cells, 1):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.strip():
            run(source, f"{path}, cell {number}")


def _by_ipython() -> Callable[[str, str], None] | None:
    try:
        from IPython.core.interactiveshell import InteractiveShell
    except ImportError:
        return None
    shell: Any = InteractiveShell.instance()
    shell.showtraceback = lambda *args, **kwargs: None  # Python shows it, once, when the script ends

    def run(source: str, where: str) -> None:
        shown = [line for line in source.split("\n") if not line.lstrip().startswith("%matplotlib")]  # to nobody
        shell.run_cell("\n".join(shown), store_history=False).raise_error()

    return run


def _plainly() -> Callable[[str, str], None]:
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def run(source: str, where: str) -> None:
        plain = "\n".join(_as_python(line) for line in source.split("\n"))
        linecache.cache[where] = (len(plain), None, plain.splitlines(True), where)  # for tracebacks
        exec(compile(plain, where, "exec"), namespace)

    return run


def _as_python(line: str) -> str:
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if bare.startswith("!"):
        return f"{indent}__import__('subprocess').run({bare[1:]!r}, shell=True)"
    if bare.startswith("%"):
        if not bare.startswith(_PASSED_OVER):
            print(f"Lapis: {bare!r} needs IPython, which this environment lacks: passed over.", file=sys.stderr)
        return f"{indent}pass"
    return line


if __name__ == "__main__":
    main(sys.argv[1:])
