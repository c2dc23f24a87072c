"""Which functions of Lapis are called while a program runs, in its own process and in all that come of it.

The sources are copied, and the copy notes each function at its first call: server, agents and scripts are started from
the sources of whoever starts them, so they all run the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import lapis

SOURCES = Path(lapis.__file__).parents[1]
_NOTE = """

def _note_calls() -> None:
    import os
    import sys
    import threading

    known = set()

    def note(frame, event, argument):
        code = frame.f_code
        if event != "call" or code in known:
            return
        known.add(code)
        file = os.path.realpath(code.co_filename)  # a script has the packages by a link
        if file.startswith({sources!r}):
            line = "%s %s\\n" % (file[len({sources!r}) + 1 :], code.co_qualname)
            notes = os.open({notes!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(notes, line.encode())
            os.close(notes)

    threading.setprofile(note)
    sys.setprofile(note)


_note_calls()
"""


def called_by(program: str, folder: Path) -> set[tuple[str, str]]:
    """(file, qualified name) of each function that `program` has called, files as paths below `src`."""
    sources, notes = folder / "src", folder / "calls.txt"
    shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("__pycache__"))
    with open(sources / "lapis" / "__init__.py", "a") as file:
        file.write(_NOTE.format(sources=str(sources), notes=str(notes)))
    (folder / "story.py").write_text(program)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LAPIS_")}
    environment.update(PYTHONPATH=str(sources), LAPIS_HOME=str(folder / "home"), LAPIS_OPEN_FOLDERS=str(folder))
    try:
        done = subprocess.run(
            [sys.executable, "story.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        subprocess.run([sys.executable, "-m", "lapis.cli", "stop"], env=environment, capture_output=True)
    lines = [line.split(" ", 1) for line in notes.read_text().splitlines()]
    return {(file, name.replace(".<locals>", "")) for file, name in lines}
