"""A run keeps of its definition what it says otherwise than usual, and gives all of it back."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from azureml.core import ScriptRunConfig
from lapis.sdk.config.runconfig import to_run_definition
from lapis.server.store import usual_definition

_NAMES = st.sampled_from(["", "command", "environment", "python", "docker", "arguments", "history", "spark", "own"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner),
)


@given(st.dictionaries(_NAMES, _VALUES))
def test_whatever_a_definition_holds_comes_back(definition: dict[str, Any]) -> None:
    short = usual_definition.shortened(definition)
    if short is not None:
        assert json.dumps(usual_definition.whole(short), sort_keys=True) == json.dumps(definition, sort_keys=True)


def test_a_name_that_is_empty_is_no_trap() -> None:
    assert usual_definition.shortened({"environment": {"environmentVariables": {"": "x"}}}) is None


def test_the_definition_of_a_script_says_little_otherwise(tmp_path: Any) -> None:
    definition = json.loads(json.dumps(to_run_definition(ScriptRunConfig(str(tmp_path), "train.py").run_config)))
    short = usual_definition.shortened(definition)
    assert short is not None and usual_definition.whole(short) == definition
    assert len(json.dumps(short)) < len(json.dumps(definition)) / 3


def test_what_is_usual_never_changes() -> None:
    """Databases hold differences to it."""
    text = json.dumps(usual_definition._USUAL, sort_keys=True)
    assert (
        hashlib.sha256(text.encode()).hexdigest() == "bfffffacc094641e000e997078b3ef0e623e55bb2e92c75dcce0093530bba5ab"
    )
