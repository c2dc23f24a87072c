"""Modules that are loaded when something of them is first used."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lapis import later

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Makes modules of a package `lazy` that loads them late: by keywords, each with its text."""
    package = tmp_path / "lazy"
    package.mkdir()
    (package / "__init__.py").write_text("from lapis.later import load_late\n\nload_late(__name__)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def write(**texts: str) -> None:
        for name, text in texts.items():
            (package / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazy"]:
        del sys.modules[name]
    for name in [name for name in later._waiting if name.partition(".")[0] == "lazy"]:
        del later._waiting[name]


def imported(name: str) -> ModuleType:
    """As the statement gives it: `from lazy import name`."""
    names: dict[str, Any] = {}
    exec(f"from lazy import {name}", names)
    module: ModuleType = names[name]
    return module


def test_a_module_is_loaded_by_the_first_look_at_one_of_its_names(write: Write) -> None:
    write(part="value = 1")
    part = imported("part")
    assert "lazy.part" not in sys.modules
    assert part.value == 1
    assert sys.modules["lazy.part"] is part and type(part) is ModuleType


def test_whoever_imports_it_in_whatever_way_has_the_same_module(write: Write) -> None:
    write(part="value = object()")
    early = imported("part")
    loaded = importlib.import_module("lazy.part")
    assert early is imported("part") is loaded
    assert early.__file__ == loaded.__file__ and early.__spec__ is loaded.__spec__
    assert early.value is loaded.value


def test_what_is_set_before_anything_was_looked_at_stays(write: Write) -> None:
    write(part="limit = 1\ndef ask(): return limit")
    part = imported("part")
    part.limit = 2  # type: ignore[attr-defined]
    assert part.ask() == 2


def test_a_name_that_is_nowhere_is_missing_as_from_any_module(write: Write) -> None:
    write(part="value = 1")
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'lazy'"):
        imported("nothing")
    with pytest.raises(AttributeError, match="module 'lazy.part' has no attribute 'nothing'"):
        imported("part").nothing  # noqa: B018
    assert "value" in dir(imported("part"))


def test_a_module_that_cannot_be_loaded_says_why_and_can_be_loaded_once_mended(write: Write) -> None:
    write(part="import a_module_that_is_nowhere", other="")
    part = imported("part")
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="a_module_that_is_nowhere"):
            part.value  # noqa: B018
    write(part="value = 'mended, and longer than before'")
    assert part.value.startswith("mended")


def test_modules_that_need_each_other_can_have_each_other(write: Write) -> None:
    write(
        first="from lazy import second\nvalue = 1\ndef ask(): return second.value",
        second="from lazy import first\nvalue = first.value + 1",
    )
    assert imported("first").ask() == 2


def test_threads_that_look_at_once_all_find_it_whole_and_it_is_loaded_once(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate: Any = ModuleType("gate")
    gate.loads, gate.entered, gate.go = [], threading.Event(), threading.Event()
    monkeypatch.setitem(sys.modules, "gate", gate)
    write(part="import gate\ngate.loads.append(1)\ngate.entered.set()\ngate.go.wait(10)\nvalue = 1")
    part, seen = imported("part"), []
    threads = [threading.Thread(target=lambda: seen.append(part.value)) for _ in range(8)]
    for thread in threads:
        thread.start()
        assert gate.entered.wait(10)  # the others come while the first is at it
    gate.go.set()
    for thread in threads:
        thread.join()
    assert (seen, gate.loads) == ([1] * 8, [1])


def test_all_that_waits_can_be_loaded_before_a_fork(write: Write) -> None:
    write(first="from lazy import second", second="value = 2")
    imported("first")
    later.load_waiting()
    assert {"lazy.first", "lazy.second"} <= set(sys.modules)
    assert not later._waiting
