"""What SDK v1 declares, as tests/data/sdk_v1_signatures.txt has it: modules, classes, members and their parameters."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SIGNATURES_FILE = Path(__file__).with_name("sdk_v1_signatures.txt")

_CALLABLE = re.compile(r"(?:(static|class|def) )?(\w+)\((.*?)\)(?: once (.*))?")
_CLASS = re.compile(r"class (\w+)(?:\((.*?)\))?(?: once (.*?))?(?: of ([\w.]+))?")


@dataclass(frozen=True)
class Parameter:
    name: str
    default: str | None = None
    """As source text; None where SDK v1 requires a value."""


@dataclass(frozen=True)
class Callable:
    positional: tuple[Parameter, ...] = ()
    keywords: tuple[Parameter, ...] = ()
    once: tuple[Parameter, ...] = ()
    """Parameters of older releases only."""
    takes_more_positional: bool = False
    takes_more_keywords: bool = False
    on_class: bool = False
    """Whether it is called without an instance: a static method, a class method or a function."""


@dataclass
class Class:
    base: str | None
    constructor: Callable | None
    members: dict[str, Callable | None] = field(default_factory=dict)
    """None for what is an attribute."""


@cache
def declarations() -> dict[str, Class | Callable]:
    """Every class and function of SDK v1 by its path."""
    found: dict[str, Class | Callable] = {}
    module, owner = "", Class(None, None)
    for line in SIGNATURES_FILE.read_text().splitlines():
        text = line.strip()
        depth = len(line) - len(text)
        if text.startswith("#"):
            continue
        if depth == 0:
            module = text
        elif depth == 2 and text.startswith("class "):
            name, owner = _class(module, text)
            found[f"{module}.{name}"] = owner
        else:
            name, declared = _member(text)
            if depth == 2:
                assert declared is not None, line
                found[f"{module}.{name}"] = declared
            else:
                owner.members[name] = declared
    return found


def members_of(path: str) -> Iterator[tuple[str, Callable | None]]:
    """The members of the class at `path`, those of its bases too."""
    declared = declarations()[path]
    assert isinstance(declared, Class)
    if declared.base is not None:
        yield from ((name, member) for name, member in members_of(declared.base) if name not in declared.members)
    yield from declared.members.items()


def _class(module: str, text: str) -> tuple[str, Class]:
    name, parameters, once, base = _matched(_CLASS, text)
    constructor = None if parameters is None else _callable(parameters, once)
    if base is not None and "." not in base:
        base = f"{module}.{base}"
    return str(name), Class(base, constructor)


def _member(text: str) -> tuple[str, Callable | None]:
    if "(" not in text:
        return text, None
    kind, name, parameters, once = _matched(_CALLABLE, text)
    return str(name), _callable(str(parameters), once, on_class=kind is not None)


def _matched(pattern: re.Pattern[str], text: str) -> tuple[str | None, ...]:
    match = pattern.fullmatch(text)
    assert match is not None, text
    return match.groups()


def _callable(parameters: str, once: str | None, on_class: bool = False) -> Callable:
    arguments = _arguments(parameters)
    return Callable(
        tuple(_positional(arguments)),
        tuple(_keywords(arguments)),
        tuple(_positional(_arguments(once or ""))),
        arguments.vararg is not None,
        arguments.kwarg is not None,
        on_class,
    )


def _arguments(text: str) -> ast.arguments:
    (function,) = ast.parse(f"def function({text}): ...").body
    assert isinstance(function, ast.FunctionDef)
    return function.args


def _positional(arguments: ast.arguments) -> Iterator[Parameter]:
    required = len(arguments.args) - len(arguments.defaults)
    return map(_parameter, arguments.args, [None] * required + [*arguments.defaults])


def _keywords(arguments: ast.arguments) -> Iterator[Parameter]:
    return map(_parameter, arguments.kwonlyargs, arguments.kw_defaults)


def _parameter(argument: ast.arg, default: ast.expr | None) -> Parameter:
    return Parameter(argument.arg, None if default is None else ast.unparse(default))
