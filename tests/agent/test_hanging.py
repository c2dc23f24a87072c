"""When the processes of a node count as doing nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from lapis.agent.crew import Crew, Member
from lapis.agent.hanging import SilenceWatch
from lapis.testing import until


def member(folder: Path, name: str, code: str) -> Member:
    place = folder / name
    argv = [sys.executable, "-c", code]
    variables = {"LAPIS_MEMBER": f"test:{name}", "PYTHONUNBUFFERED": "1"}
    return Member(name, str(place), str(folder / f"{name}.txt"), f"{name}.txt", argv, variables, str(folder))


def test_who_neither_prints_nor_computes_is_quiet(tmp_path: Path) -> None:
    sleeps = member(tmp_path, "sleeps", "import time; time.sleep(100)")
    prints = member(tmp_path, "prints", "import time\nwhile True:\n    print(1)\n    time.sleep(0.05)")
    computes = member(tmp_path, "computes", "while True: pass")
    crew = Crew([sleeps, prints, computes])
    crew.start()
    try:
        watch = SilenceWatch(crew, str(tmp_path / "journal.jsonl"), after=3.0)
        until(lambda: (watch.look(), watch.quiet(sleeps) >= 2.0)[1])
        assert watch.quiet(prints) < 2.0 and watch.quiet(computes) < 2.0
        assert not watch.hangs(), "two of them are at work"
    finally:
        crew.stop(0.0)


def test_a_logged_metric_is_a_sign_of_life_of_all(tmp_path: Path) -> None:
    sleeps = member(tmp_path, "sleeps", "import time; time.sleep(100)")
    crew = Crew([sleeps])
    crew.start()
    try:
        watch = SilenceWatch(crew, str(tmp_path / "journal.jsonl"), after=100.0, now=0.0)
        watch.look(now=110.0)
        assert watch.hangs()
        (tmp_path / "journal.jsonl").write_text("a line\n")
        watch.look(now=200.0)
        assert watch.quiet(sleeps) == 0.0 and not watch.hangs()
        watch.look(now=300.0)
        assert watch.hangs()
    finally:
        crew.stop(0.0)


def test_a_crew_whose_processes_have_ended_does_not_hang(tmp_path: Path) -> None:
    ends = member(tmp_path, "ends", "pass")
    crew = Crew([ends])
    crew.start()
    until(lambda: ends.ended() is not None)
    watch = SilenceWatch(crew, str(tmp_path / "journal.jsonl"), after=1.0, now=0.0)
    watch.look(now=10.0)
    watch.look(now=20.0)
    assert not watch.hangs()
