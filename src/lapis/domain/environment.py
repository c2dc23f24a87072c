"""What an environment is called when people are told of it."""

from __future__ import annotations


def called(name: str | None) -> str:
    """In the midst of a sentence. That of a RunConfiguration has no name."""
    return f"environment '{name}'" if name else "the environment of this run"


def called_first(name: str | None) -> str:
    """At the beginning of a sentence."""
    return f"Environment '{name}'" if name else "The environment of this run"
