"""What the documentation says is true: its code runs, its links lead somewhere, its names exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lapis.testing import Home
from tests.docs.page import blocks, fits

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "lapis"
RUNNER = Path(__file__).with_name("page.py")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


# -- code


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.runs for block in blocks(page.read_text()))], ids=named
)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(
    page: Path, on_shared_server: Home, tmp_path: Path
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # pages are read at the top of the repository
    done = subprocess.run([sys.executable, RUNNER, page], cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_block_of_the_readme_runs_and_shows_what_it_prints() -> None:
    first = blocks((ROOT / "README.md").read_text())[0]
    assert first.runs and first.prints
    assert len([line for line in first.code.splitlines() if line.strip()]) <= 10


def test_a_block_is_run_written_or_left_alone_as_its_comment_says() -> None:
    page = """
```python
print(1)
```

```text
1
```
<!-- not run -->
```python
print(2)
```
`a/b.py`:

```python
print(3)
```
```bash
echo 4
```
"""
    found = [(block.line, block.code, block.remark, block.file, block.prints) for block in blocks(page)]
    assert found == [
        (3, "print(1)\n", "", "", "1\n"),
        (11, "print(2)\n", "not run", "", None),
        (16, "print(3)\n", "", "a/b.py", None),
    ]


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert fits("RunId: ...\nStatus: Completed (...)\n", "RunId: x_1\nmore\nStatus: Completed (0)")
    assert not fits("RunId: ...\nStatus: Completed\n", "RunId: x_1\nStatus: Failed\n")
    assert not fits("1\n", "1\n2\n")


# -- settings and names


def test_every_setting_is_explained() -> None:
    known = set(re.findall(r'"(LAPIS_\w+)"', (SOURCE / "domain" / "settings.py").read_text()))
    assert known
    explained = set(re.findall(r"`(LAPIS_\w+)`", (ROOT / "docs" / "settings.md").read_text()))
    assert sorted(known - explained) == []


def test_no_page_names_a_setting_that_does_not_exist() -> None:
    code = "\n".join(source.read_text() for source in SOURCE.rglob("*.py"))
    known = set(re.findall(r"LAPIS_[A-Z_]+", code))
    for page in [*PAGES, *OTHERS]:
        assert set(re.findall(r"\bLAPIS_[A-Z_]+", page.read_text())) <= known, named(page)


def test_every_error_class_is_in_the_tree_of_the_errors_page() -> None:
    from lapis.errors import BY_CODE

    text = (ROOT / "docs" / "errors.md").read_text()
    assert [cls.__name__ for cls in BY_CODE.values() if f"`{cls.__name__}`" not in text] == []


def test_the_states_of_a_run_are_told_as_they_are() -> None:
    """The table of moves in the story is the one in the code."""
    from lapis.domain.run import _NEXT, RunState

    text = (ROOT / "docs" / "life-of-a-run.md").read_text()
    told = {
        RunState(state): frozenset(RunState(word) for word in re.findall(r"`(\w+)`", moves))
        for state, moves in re.findall(r"^\| `(\w+)` \| ([^|]*) \| [^|]* \|$", text, re.M)
        if state in RunState._value2member_map_
    }
    assert told == dict(_NEXT)


# -- links


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=named)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        if not place.exists() or (heading and heading not in headings(place)):
            broken.append(target)
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)\s#]+)", page.read_text())
        todo += [(page.parent / link).resolve() for link in links if not re.match(r"[a-z]+:", link)]
    assert sorted(named(page) for page in {*PAGES, *OTHERS} - seen) == []


@pytest.mark.parametrize("call", ["Run", "Experiment"])
def test_the_page_that_an_object_names_as_its_documentation_exists(call: str) -> None:
    import azureml.core

    address = getattr(azureml.core, call).get_docs_url()
    assert (ROOT / "docs" / address.rpartition("/docs/")[2]).is_file()


def headings(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
