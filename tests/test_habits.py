"""What is checked before a commit, on a hosted machine and by hand is the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text())


def test_a_commit_is_checked_as_make_check_does() -> None:
    target = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert target is not None
    commands = [line.strip().replace("$(BIN)", ".venv/bin") for line in target[1].splitlines()]
    hooks = [hook for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert [hook["entry"] for hook in hooks] == commands


def test_the_hosted_workflow_runs_what_anybody_can_run() -> None:
    job = read(".github/workflows/ci.yml")["jobs"]["test"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[-1].endswith("CI=true bash .ci/run")
    (python,) = [step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
    assert python == "3.11"
    others = " ".join(commands[:-1]).split("install")[-1].split()
    from tests.environments.test_build import MINOR_VERSIONS

    assert {python, *others} == set(MINOR_VERSIONS)


UNPACKS = re.compile(r"^\s*(?:import|from) (zipfile|tarfile|gzip|bz2|lzma|zlib)\b", re.M)
MAY_UNPACK = {
    "files/archives.py": "the one place that does, within bounds",
    "files/pieces.py": "checksums only",
    "scoring/runtimes/keras_files.py": "looks for code in a model, in the process that would load it",
    "upkeep/backup_places.py": "writes backups, and reads the user's own",
    "upkeep/restore.py": "reads the user's own backup, file by file, each by its hash",
    "engines/ray.py": "packs Lapis' own sources",
    "engines/ray_node.py": "unpacks Lapis' own sources, on a node that has nothing else of Lapis",
    "sdk/runs/run_files.py": "packs what a user asked for",
    "tables/files.py": "a table is read from it row by row, by the process that wants the table",
    "environments/inside/shims/lapis_tensorflow_examples.py": "runs in a user's script, on files that it downloaded",
}


def test_what_is_packed_is_unpacked_in_one_place() -> None:
    package = ROOT / "src" / "lapis"
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if UNPACKS.search(path.read_text())}
    assert found == set(MAY_UNPACK)


def test_every_route_reads_json_within_bounds() -> None:
    for path in (ROOT / "src" / "lapis" / "server" / "api").glob("*.py"):
        assert path.name == "request.py" or "APIRouter(" not in path.read_text(), f"{path}: use make_router"


def test_every_limit_is_explained_with_its_value() -> None:
    from lapis.domain import limits

    page = (ROOT / "docs" / "limits.md").read_text()
    explained = dict(re.findall(r"^\| `(\w+)` \| ([\d,.]+)", page, re.M))
    numbers = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert {name: int(value.replace(",", "")) for name, value in explained.items()} == numbers


def test_nothing_is_written_under_a_name_in_tmp_that_others_could_guess() -> None:
    """Who knows the name first may put a link or a folder of their own there. mkdtemp and its kin choose theirs."""
    guessable = re.compile(r"gettempdir|[\"'(=]/(tmp|var/tmp|dev/shm)\b")
    found = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "src").rglob("*.py")
        for line in path.read_text().splitlines()
        if guessable.search(line)
        and not (
            "HOME=/tmp" in line or "is_within(" in line
        )  # a container has one of its own; paths are compared with it
    }
    assert found == {
        'src/lapis/server/control/admission.py: f"{tempfile.gettempdir()}, is for runs too."',  # only compared and told
        'src/lapis/agent/mpi.py: memory = "/dev/shm" if os.path.isdir("/dev/shm") else None',  # where mkdtemp makes one
    }
