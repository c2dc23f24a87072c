"""A call written for SDK v1 fits: every parameter of SDK v1 is there, by its name, in its place, with its default."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lapis.errors import NotThereYet
from lapis.sdk.base.missing_names import NOT_THERE_YET, stand_in
from tests.data import sdk_v1

COMPATIBILITY = Path(__file__).parents[2] / "docs" / "compatibility.md"
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def modules_of_sdk_v1() -> list[str]:
    return sorted({path.rpartition(".")[0] for path in sdk_v1.declarations()})


@pytest.mark.parametrize("module", modules_of_sdk_v1())
def test_every_call_of_sdk_v1_fits(module: str) -> None:
    on_purpose = differences_on_purpose()
    assert [fault for what, fault in faults_in(module) if what not in on_purpose] == []


def test_every_listed_difference_is_one() -> None:
    found = {what for module in modules_of_sdk_v1() for what, _ in faults_in(module)}
    assert differences_on_purpose() - found == set()


def test_the_file_has_a_class_or_function_for_every_name_that_is_not_there_yet() -> None:
    waiting = {id(stand_in(path)) for path in NOT_THERE_YET}
    listed = {id(found_at(path)) for path in sdk_v1.declarations()}
    assert waiting - listed == set()


def differences_on_purpose() -> set[str]:
    """What the table of signatures in docs/compatibility.md names."""
    section = COMPATIBILITY.read_text().partition("## Signatures that differ")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def faults_in(module: str) -> Iterator[tuple[str, str]]:
    """Each thing of the module that cannot be used as in SDK v1, with what is wrong with it."""
    for path, declared in sdk_v1.declarations().items():
        if path.rpartition(".")[0] != module or is_waiting(found_at(path)):
            continue
        faults = faults_of_class(path, declared) if isinstance(declared, sdk_v1.Class) else faults_of(path, declared)
        for what, fault in faults:
            yield what, f"{what}: {fault}"


def faults_of_class(path: str, declared: sdk_v1.Class) -> Iterator[tuple[str, str]]:
    cls = found_at(path)
    if declared.constructor is not None:
        for function in (cls.__new__, cls.__init__):
            if inspect.isfunction(function) and not takes_anything(function):
                yield from ((path, fault) for fault in misfits(parameters_of(function)[1:], declared.constructor))
    for name, member in sdk_v1.members_of(path):
        what, there = f"{path}.{name}", inspect.getattr_static(cls, name, None)
        if there is None:
            if not is_assigned(cls, name):
                yield what, "is missing"
        elif member is not None:
            yield from faults_of_method(what, there, member)


def faults_of_method(what: str, there: Any, member: sdk_v1.Callable) -> Iterator[tuple[str, str]]:
    on_class = isinstance(there, (staticmethod, classmethod))
    if on_class != member.on_class:
        yield what, f"is called {'without' if on_class else 'with'} an instance"
        return
    function = there.__func__ if on_class else there
    first = 0 if isinstance(there, staticmethod) else 1
    faults = list(misfits(parameters_of(function)[first:], member))
    if faults and takes_anything(function):
        with pytest.raises(NotThereYet):
            function()
        return
    yield from ((what, fault) for fault in faults)


def faults_of(path: str, declared: sdk_v1.Callable) -> Iterator[tuple[str, str]]:
    yield from ((path, fault) for fault in misfits(parameters_of(found_at(path)), declared))


def misfits(parameters: list[inspect.Parameter], wanted: sdk_v1.Callable) -> Iterator[str]:
    """Why these parameters do not take every call that SDK v1 takes."""
    by_name = {parameter.name: parameter for parameter in parameters if parameter.kind in BY_NAME}
    kinds = {parameter.kind for parameter in parameters}
    # Parameters with a _ are private in SDK v1 too, and stand where it has them.
    order = [name for name, p in by_name.items() if p.kind is p.POSITIONAL_OR_KEYWORD and not name.startswith("_")]
    wanted_order = [parameter.name for parameter in wanted.positional]
    if order[: len(wanted_order)] != wanted_order:
        yield f"takes {order} by position, not {wanted_order}"
    for parameter in wanted.positional + wanted.keywords + wanted.once:
        own = by_name.pop(parameter.name, None)
        if own is not None:
            yield from misfits_of_default(own, parameter)
        elif parameter not in wanted.once or inspect.Parameter.VAR_KEYWORD not in kinds:
            yield f"has no parameter {parameter.name}"
    yield from (f"requires {name}, which SDK v1 does not have" for name, own in by_name.items() if is_required(own))
    if wanted.takes_more_keywords and inspect.Parameter.VAR_KEYWORD not in kinds:
        yield "takes no more keywords"
    if wanted.takes_more_positional and inspect.Parameter.VAR_POSITIONAL not in kinds:
        yield "takes no more by position"


def misfits_of_default(parameter: inspect.Parameter, wanted: sdk_v1.Parameter) -> Iterator[str]:
    if wanted.default is None:
        return
    if is_required(parameter):
        yield f"requires {parameter.name}, which SDK v1 does not"
        return
    try:
        default = ast.literal_eval(wanted.default)
    except ValueError:  # a name, whose value is not in the file
        return
    # None stands for an empty list or dictionary, which as a default would be shared between calls.
    alike = {repr(default), "None"} if default in ([], {}) else {repr(default)}
    if repr(parameter.default) not in alike:
        yield f"takes {parameter.name}={parameter.default!r} where SDK v1 takes {default!r}"


def takes_anything(function: Callable[..., Any]) -> bool:
    kinds = {parameter.kind for parameter in parameters_of(function)}
    return {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds


def is_waiting(found: Any) -> bool:
    return any(found is stand_in(path) for path in NOT_THERE_YET)


def is_assigned(cls: type, name: str) -> bool:
    """Whether objects are given the attribute: a class of settings lists it, another annotates it."""
    return name in getattr(cls, "_fields", {}) or any(name in vars(c).get("__annotations__", {}) for c in cls.__mro__)


def is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def found_at(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
