"""What lies in outputs and logs at the end is what is stored: by its content, under its name, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from azureml.core import Experiment, ScriptRunConfig, Workspace
from lapis.testing import Home, until_written

Submit = Callable[..., Any]
# `stored(name)` returns when the agent has sent a file, or has sent so much of a log.
WAIT = """
import mmap, os, shutil, sys, time
from azureml.core import Run
run = Run.get_context()
def stored(name, size=None):
    while True:
        found = [f for f in run._files() if f["name"] == name and (f["hash"] if size is None else f["size"] >= size)]
        if found:
            return
        time.sleep(0.05)
def write(path, text, how="w"):
    with open(path, how) as file:
        file.write(text)
"""

# Each changes a file of 3,000 bytes so that its size and its time stay as they were.
CHANGES = {
    "utime": """
before = os.stat(path)
write(path, "new" * 1000)
os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
""",
    "cp -p": """
write("other", "new" * 1000)
before = os.stat(path)
os.utime("other", ns=(before.st_atime_ns, before.st_mtime_ns))
shutil.copy2("other", path)
""",
    "rename": """
write("other", "new" * 1000)
before = os.stat(path)
os.utime("other", ns=(before.st_atime_ns, before.st_mtime_ns))
os.replace("other", path)
""",
    "memory map": """
mapped[:] = b"new" * 1000
""",
    "nothing": "",
}


def test_a_settled_output_that_changes_and_does_not_look_so_is_stored_as_it_is_at_the_end(finish: Submit) -> None:
    code = (
        WAIT
        + f"""
changes = {CHANGES!r}
for how in changes:
    write("outputs/" + how, "old" * 1000)
file = open("outputs/memory map", "r+b")
mapped = mmap.mmap(file.fileno(), 0)
mapped[:] = b"odd" * 1000
for how in changes:
    stored("outputs/" + how)
for how, change in changes.items():
    path = "outputs/" + how
    exec(change)
"""
    )
    run = finish(code)
    assert run.get_status() == "Completed" and warnings_of(run) == []
    found = {how: run._text_of(f"outputs/{how}") for how in CHANGES}
    assert found == {how: ("old" if how == "nothing" else "new") * 1000 for how in CHANGES}


REWRITES = {
    "longer": 'write(path, "new " * 2000)',
    "as long": 'write(path, "new " * 500)',
    "shorter": 'write(path, "new " * 5)',
    "cut": """
with open(path, "r+") as file:
    file.truncate(0)
    file.write("new " * 3000)
""",
    "in place": """
with open(path, "r+") as file:
    file.write("NEW ")
write(path, "more", "a")
""",
    "rotated": 'os.rename(path, path + ".1")\nwrite(path, "new " * 700)',
    "removed": 'os.remove(path)\nwrite(path, "new " * 700)',
    "replaced": 'write("y", "new " * 700)\nos.replace("y", path)',
    "appended": 'write(path, "more", "a")',
}


def test_a_log_that_is_rewritten_is_stored_as_it_is_at_the_end(finish: Submit, tmp_path: Path) -> None:
    code = (
        WAIT
        + f"""
rewrites = {REWRITES!r}
for how in rewrites:
    write("logs/" + how, "old " * 500)
for how in rewrites:
    stored("logs/" + how, 2000)
for how, rewrite in rewrites.items():
    path = "logs/" + how
    exec(rewrite)
shutil.copytree("logs", {str(tmp_path / "logs")!r})
"""
    )
    run = finish(code)
    assert run.get_status() == "Completed"
    lay_there = {f"logs/{file.name}": file.read_text() for file in (tmp_path / "logs").iterdir() if file.is_file()}
    names = [name for name in run.get_file_names() if name.startswith("logs/")]
    assert {name: run._text_of(name) for name in names} == lay_there and len(names) == len(REWRITES) + 1


def test_a_log_that_is_rewritten_again_and_again_while_it_is_sent_is_never_a_mixture(finish: Submit) -> None:
    code = """
for round in range(60):
    write("logs/x", f"{round} " * (1000 + 37 * round % 400))
    time.sleep(0.03)
"""
    run = finish(WAIT + code)
    assert set(run._text_of("logs/x").split()) == {"59"}


# -- names

ODD = {
    b"back\\slash": "back%5Cslash",
    b"new\nline": "new%0Aline",
    b"not-utf8-\xff": "not-utf8-%FF",
    b"bell\x07": "bell%07",
    b"del\x7f": "del%7F",
    "c1-\x85".encode(): "c1-%C2%85",
    b"tab\tin/deep\n/file": "tab%09in/deep%0A/file",
    b"plain": "plain",
    "ünïcödé".encode(): "ünïcödé",
    b"100%": "100%",
    b"a%0Ab": "a%0Ab",
}
MAKE = f"""
import os
for name in {list(ODD)!r}:
    for folder in (b"outputs", b"logs"):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name)
"""


def check_odd_names(run: Any) -> None:
    assert run.get_status() == "Completed"
    names, said = run.get_file_names(), "\n".join(warnings_of(run))
    for found, stored in ODD.items():
        for folder in ("outputs", "logs"):
            assert f"{folder}/{stored}" in names
            kept: list[bytes] = []
            run._read_file(f"{folder}/{stored}", kept.append)
            assert b"".join(kept) == found
            assert (f"is stored as '{folder}/{stored}'" in said) == (found.decode("utf-8", "replace") != stored)


def test_files_with_odd_names_are_stored_under_names_that_can_be_and_told(finish: Submit) -> None:
    check_odd_names(finish(MAKE))


def test_files_with_odd_names_are_taken_up_by_interactive_runs_too(experiment: Experiment) -> None:
    with experiment.start_logging() as run:
        exec(MAKE)
    check_odd_names(run)


def test_two_files_whose_escaped_names_are_the_same_are_both_stored(finish: Submit) -> None:
    run = finish("open('outputs/a\\nb', 'w').write('odd')\nopen('outputs/a%0Ab', 'w').write('plain')\n")
    found = sorted(run._text_of(name) for name in run.get_file_names() if name.startswith("outputs/"))
    assert found == ["odd", "plain"]


def test_a_file_that_is_moved_in_with_an_old_time_is_taken_up(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("long ago")
    os.utime(tmp_path / "made", (1e9, 1e9))
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "before").write_text("of an earlier run")
    with experiment.start_logging() as run:
        os.rename(tmp_path / "made", tmp_path / "outputs" / "made")
    assert run.get_file_names() == ["outputs/made"]


# -- links


@pytest.mark.parametrize("folder", ["outputs", "logs"])
def test_a_folder_that_was_made_a_link_out_of_the_run_is_not_followed(
    folder: str, finish: Submit, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("hidden")
    run = finish(f"import os\nos.rmdir('{folder}')\nos.symlink({str(tmp_path / 'secret')!r}, '{folder}')\n")
    assert run.get_status() == "Completed"
    assert not [name for name in run.get_file_names() if name.startswith(folder)]
    assert f"'{folder}' was made a link to" in warnings_of(run)[0]


def test_links_within_a_run_are_stored_as_files_and_others_are_told(finish: Submit, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "folder").mkdir()
    code = f"""
import os
open("outputs/epoch-2", "w").write("weights")
os.symlink("epoch-2", "outputs/last")
os.symlink({str(tmp_path / "secret")!r}, "outputs/out")
os.symlink({str(tmp_path / "folder")!r}, "outputs/out-folder")
os.symlink("nowhere", "outputs/nowhere")
os.mkfifo("outputs/pipe")
"""
    run = finish(code)
    names = [name for name in run.get_file_names() if name.startswith("outputs/")]
    assert names == ["outputs/epoch-2", "outputs/last"] and run._text_of("outputs/last") == "weights"
    said = warnings_of(run)
    for name in ("outputs/out", "outputs/out-folder", "outputs/nowhere", "outputs/pipe"):
        assert any(f"'{name}' is" in each for each in said), said
    assert len(said) == 4


def test_interactive_outputs_that_are_a_link_are_told(experiment: Experiment, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here").mkdir()
    os.chdir(tmp_path / "here")
    os.symlink(tmp_path / "elsewhere", "outputs")
    with experiment.start_logging() as run:
        (tmp_path / "elsewhere" / "x").write_text("x")
    assert run.get_file_names() == [] and "'outputs' was made a link" in warnings_of(run)[0]
    with experiment.start_logging(outputs="outputs") as run:
        (tmp_path / "elsewhere" / "y").write_text("named by the user")
    assert run.get_file_names() == ["outputs/y"]


# -- uploaded and collected


def test_an_upload_is_not_overwritten_by_an_output_of_its_name_and_both_are_kept(finish: Submit) -> None:
    code = """
from azureml.core import Run
run = Run.get_context()
open("other.txt", "w").write("uploaded")
run.upload_file("outputs/x.txt", "other.txt")
open("outputs/x.txt", "w").write("written")
"""
    check_both(finish(code))


def test_nor_by_one_of_an_interactive_run(experiment: Experiment, tmp_path: Path) -> None:
    with experiment.start_logging() as run:
        (tmp_path / "other.txt").write_text("uploaded")
        run.upload_file("outputs/x.txt", str(tmp_path / "other.txt"))
        (tmp_path / "outputs" / "x.txt").write_text("written")
    check_both(run)


def check_both(run: Any) -> None:
    assert run.get_status() == "Completed"
    assert run._text_of("outputs/x.txt") == "uploaded"
    assert run._text_of("outputs/x~collected.txt") == "written"
    assert "'outputs/x.txt' was uploaded" in warnings_of(run)[0] and "'outputs/x~collected.txt'" in warnings_of(run)[0]


def test_an_output_that_was_sent_early_is_no_upload_though_its_agent_is_killed(
    home: Home, script: Callable[..., str], tmp_path: Path
) -> None:
    import json
    import signal

    code = (
        WAIT
        + f"""
write("outputs/x", "early")
stored("outputs/x")
write({str(tmp_path / "sent")!r}, "yes\\n")
while not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.02)
write("outputs/x", "in the end")
"""
    )
    run = Experiment(Workspace.from_config(), "early").submit(ScriptRunConfig(script(code), "train.py"))
    until_written(tmp_path / "sent")
    os.kill(json.loads((home.path / "work" / run.id / "agent.json").read_text())["pid"], signal.SIGKILL)
    (tmp_path / "go").touch()
    assert run.wait_for_completion(raise_on_error=False)["status"] == "Completed"
    assert run._text_of("outputs/x") == "in the end" and warnings_of(run) == []


def test_a_model_that_is_registered_twice_is_what_lay_there_each_time(finish: Submit) -> None:
    code = """
from azureml.core import Run
run = Run.get_context()
for text in ("first", "second"):
    open("outputs/model.txt", "w").write(text)
    run.register_model("twice-" + run.id[-8:], model_path="outputs/model.txt")
open("outputs/model.txt", "w").write("third")
"""
    run = finish(code)
    assert run.get_status() == "Completed" and warnings_of(run) == []
    assert run._text_of("outputs/model.txt") == "third"


def warnings_of(run: Any) -> list[str]:
    return [each["message"] for each in run.get_details().get("warnings", [])]


def test_an_upload_is_not_overwritten_by_a_log_of_its_name_and_both_are_kept(finish: Submit) -> None:
    code = """
from azureml.core import Run
run = Run.get_context()
open("other.txt", "w").write("uploaded")
run.upload_file("logs/x.txt", "other.txt")
open("logs/x.txt", "w").write("written")
"""
    run = finish(code)
    assert run.get_status() == "Completed"
    assert run._text_of("logs/x.txt") == "uploaded" and run._text_of("logs/x~collected.txt") == "written"
    assert "'logs/x.txt' was uploaded" in warnings_of(run)[0]


def test_a_log_that_becomes_a_folder_harms_no_other(finish: Submit) -> None:
    code = """
write("logs/x", "a file")
stored("logs/x", 6)
os.remove("logs/x")
os.mkdir("logs/x")
write("logs/x/y", "in a folder")
write("logs/z", "another")
"""
    run = finish(WAIT + code)
    assert run.get_status() == "Completed"
    found = {run._text_of(name) for name in run.get_file_names() if name.startswith("logs/")}
    assert found == {"a file", "in a folder", "another"}
    assert "'logs/x/y' is stored as" in warnings_of(run)[0]


def test_a_log_that_becomes_a_link_out_of_the_run_stays_as_it_was(finish: Submit, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden" * 100)
    code = f"""
write("logs/x", "a file")
stored("logs/x", 6)
os.remove("logs/x")
os.symlink({str(tmp_path / "secret")!r}, "logs/x")
"""
    run = finish(WAIT + code)
    assert run.get_status() == "Completed" and run._text_of("logs/x") == "a file"
    assert "'logs/x' is a link out of the run" in warnings_of(run)[0]
