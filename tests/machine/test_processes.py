"""Which processes belong to a tree, and how all of them end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from lapis.machine import processes
from lapis.testing import until

# A tree whose youngest member has left the session of the others.
TREE = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); "
                  "time.sleep(600)", sys.argv[1]], start_new_session=True)
time.sleep(600)
"""


def test_what_lies_below_a_process_is_found_whatever_session_it_is_in(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    top = subprocess.Popen([sys.executable, "-c", TREE, str(tmp_path / "pid")])
    try:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        youngest = int((tmp_path / "pid").read_text())
        assert processes.below(top.pid) == {youngest}
        assert {top.pid, other.pid, youngest} <= processes.below(os.getpid())
        processes.end_below(top.pid, processes.started(top.pid), grace=5.0)
        assert processes.started(youngest) is None and top.poll() is None
    finally:
        for each in (top, other):
            each.kill()
            each.wait()


def test_a_process_whose_pid_was_used_again_keeps_its_children(tmp_path: Path) -> None:
    top = subprocess.Popen([sys.executable, "-c", TREE, str(tmp_path / "pid")])
    try:
        until(lambda: len(processes.below(top.pid)) == 1)
        processes.end_below(top.pid, "another one", grace=0.0)
        assert len(processes.below(top.pid)) == 1
    finally:
        processes.end_tree("", [top.pid], grace=0.0)
        top.wait()


def test_one_that_does_not_listen_is_killed_when_its_time_is_over() -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {stubborn!r}])"
    top = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert top.stdout is not None and top.stdout.readline()
        (child,) = processes.below(top.pid)
        processes.end_below(top.pid, processes.started(top.pid), grace=0.1)
        assert processes.started(child) is None
    finally:
        top.send_signal(signal.SIGKILL)
        top.communicate()
