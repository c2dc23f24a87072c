"""The YAML that we read and write is the YAML that PyYAML reads and writes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from lapis.domain.yaml_text import YamlError, dumps, loads

CONDA_FILE_BY_HAND = """\
# what the model needs
name: project_environment
channels: [conda-forge, defaults]   # in this order
dependencies:
  - python=3.6.2
  - numpy>=1.16,<2
  - "scikit-learn=0.22"
  - 'pip'
  # from the index
  - pip:
    - azureml-defaults~=1.0
    - azureml-dataset-runtime[fuse,pandas]
    - tensorflow-gpu==2.2.0 # the old name
    - --extra-index-url https://example.org/simple
    - git+https://example.org/tool.git@main#egg=tool
variables:
  LEVEL: 3
prefix: /opt/conda
"""

CONDA_FILE_WITH_FLUSH_LISTS = """\
---
channels:
- anaconda
- conda-forge
dependencies:
- python=3.8
- pip:
  - matplotlib

- pip=20.2.4
name: tf-env
"""

RUN_CONFIGURATION = """\
# comments of the tool that wrote it stand at the margin, also inside sections
script: train.py
arguments:
- --data-folder
- DatasetConsumptionConfig:mnist
- --learning-rate
- 0.01
- '007'
target: cpu-cluster
framework: Python
communicator: None
maxRunDurationSeconds:
nodeCount: 4
environment:
# about the name
  name: conda-env
  version:
  environmentVariables:
    EXAMPLE_ENV_VAR: EXAMPLE_VALUE
  python:
    userManagedDependencies: false
    condaDependenciesFile: .azureml/conda_dependencies.yml
  docker:
    baseImage: example.org/base:intelmpi2018.3-ubuntu16.04
    baseDockerfile: |
      FROM ubuntu:22.04
      # not a comment
      RUN apt-get update \\
          && apt-get install -y git

      CMD ["bash"]
    shmSize: 2g
    arguments: []
  spark:
    packages:
    - group: com.microsoft.ml.spark
      artifact: mmlspark_2.11
      version: '0.12'
    precachePackages: true
spark:
  configuration:
    spark.app.name: Azure ML Experiment
    spark.yarn.maxAppAttempts: 1
dataReferences: {}
data:
  mnist:
    dataLocation:
      dataset:
        id: ed4b4117-8eec-4a5f-afb6-481bd5ef0017
    mechanism: mount
"""

RUN_CONFIGURATION_AS_JSON = """\
{
  "script": "train.py",
  "arguments": [

  ],
  "target": "cpu", "nodeCount":1,
  "communicator": "None",
  "autoPrepareEnvironment": true,
  "maxRunDurationSeconds": null,
  "history": {"directoriesToWatch": ["logs", "r\\u00e9sum\\u00e9\\n"]}
}
"""

ODDS_AND_ENDS = """\
%YAML 1.1
---
folded: >-
  one line
  of text

  and a second
    kept as it is
literal_kept: |+
  tail

double: "tab\\there, a \\
  joined line and
  a folded one"
single: 'it''s
  folded'
plain text: runs on
  over two lines
base: &base {a: 1, b: [x, {y: z}], c: }
copy: *base
derived:
  <<: *base
  a: 2
- not: a list
"quoted key" : yes
url: http://example.org:8080/a#b
times: [1:30, 0x1F, 010, 1_000, +5, -.5, 1e3, 1.0e+3, .inf, .nan, ~, On, 3.10, 3.6.2]
nested:
- - a
  - b
-   wide: 1
    item: 2
- # a list below
  - c
...
# the end
"""

REALISTIC = [
    CONDA_FILE_BY_HAND,
    CONDA_FILE_WITH_FLUSH_LISTS,
    RUN_CONFIGURATION,
    RUN_CONFIGURATION_AS_JSON,
    ODDS_AND_ENDS.replace("- not: a list\n", ""),
    "",
    "# nothing but a comment\n",
    "just text",
]


def same(left: Any, right: Any) -> bool:
    """Equal, of the same types all the way down, and NaN is itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right or (left != left and right != right))


@pytest.mark.parametrize("text", REALISTIC)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_realistic_files_read_as_pyyaml_reads_them(text: str, line_end: str) -> None:
    expected = yaml.safe_load(text)
    found = loads(text.replace("\n", line_end))
    if isinstance(expected, dict):  # a merge puts its keys first in PyYAML, last here
        assert set(found) == set(expected)
        assert all(same(found[key], expected[key]) for key in expected if key != "derived")
    assert found == expected or "nan" in text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.6.2", "3.6.2"),
        ("3.10", 3.1),
        ("3", 3),
        ("yes", True),
        ("Off", False),
        ("None", "None"),
        ("null", None),
        ("~", None),
        ("1e-4", "1e-4"),
        ("1.0e-4", 0.0001),
        ("0o17", "0o17"),
        ("017", 15),
        ("12:30:45", 45045),
        ("2020-01-31", "2020-01-31"),
        ("'3'", "3"),
        ("python=3.8", "python=3.8"),
    ],
)
def test_a_plain_scalar_has_the_type_of_yaml_1_1_but_dates_stay_text(text: str, value: Any) -> None:
    assert same(loads(f"key: {text}"), {"key": value})


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\n\tb: 2", 2, "tab"),
        ("a: 1\na: 2", 2, "'a' is there twice"),
        ("a: b: c", 1, "inside a value"),
        ("a:\n  - b\n c: d", 3, "indented"),
        ("a: [1, 2", 1, "never closed"),
        ("a: 'open", 1, "never closed"),
        ("a: {b: 1]", 1, "expected ',' or '}'"),
        ('a: "\\q"', 1, "escape '\\q'"),
        ("a: !!python/object:os.system x", 1, "tag '!!python/object:os.system'"),
        ("? a\n: b", 1, "'?'"),
        ("a: *missing", 1, "'*missing' names no anchor"),
        ("a: 1\n---\nb: 2", 2, "more than one document"),
        ("a: @x", 1, "cannot start with '@'"),
        ("a: 'b' c", 1, "'c' after the value"),
        ("- a\nb: 1", 2, "does not belong"),
        ("a: 1\nb", 2, "expected 'key: value'"),
        ("[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_what_is_not_understood_is_said_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(YamlError) as caught:
        loads(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"Line {line}: ")
    assert said in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_an_alias_is_the_anchored_value_and_own_keys_win_over_merged_ones() -> None:
    found = loads(ODDS_AND_ENDS.replace("- not: a list\n", ""))
    assert found["copy"] == {"a": 1, "b": ["x", {"y": "z"}], "c": None}
    assert found["derived"] == {"a": 2, "b": ["x", {"y": "z"}], "c": None}


def test_lists_are_written_flush_with_their_key_and_text_as_it_reads_best() -> None:
    value = {
        "name": "env",
        "channels": ["conda-forge"],
        "dependencies": ["python=3.8", {"pip": ["azureml-dataset-runtime[fuse,pandas]", "--pre"]}],
        "version": "1",
        "when": "2020-01-31",
        "dockerfile": "FROM ubuntu\nRUN true\n",
        "empty": {"list": [], "map": {}, "text": "", "nothing": None},
    }
    assert dumps(value) == (
        "name: env\n"
        "channels:\n"
        "- conda-forge\n"
        "dependencies:\n"
        "- python=3.8\n"
        "- pip:\n"
        "  - azureml-dataset-runtime[fuse,pandas]\n"
        "  - --pre\n"
        "version: '1'\n"
        "when: '2020-01-31'\n"
        "dockerfile: |\n"
        "  FROM ubuntu\n"
        "  RUN true\n"
        "empty:\n"
        "  list: []\n"
        "  map: {}\n"
        "  text: ''\n"
        "  nothing: null\n"
    )


def test_what_yaml_has_no_word_for_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="set cannot be written"):
        dumps({"a": {1, 2}})


TRICKY_WORDS = st.sampled_from(
    ["yes", "null", "~", "1:30", "3.10", "0x1f", "---", "...", "- a", "a: b", "a #b", "#", "'", '"', "<<",
     "=", "*a", "&a", "!a", "?", "|", ">", "[", "{", "@", "%", "2020-01-31", "\n", " a", "a ", "a\n b", "\ta",
     "a\n\n", "a\n \nb", "é", "\x85", "\u2028", "\ufeff", "\xa0", "😀", "-", ":", "a:", "--x", "1_0", "."]
)  # fmt: skip
TEXTS = st.one_of(TRICKY_WORDS, st.text(max_size=12))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_reads_back_the_same_here_and_in_pyyaml(value: Any) -> None:
    text = dumps(value)
    assert same(loads(text), value)
    assert same(yaml.safe_load(text), value)


@given(VALUES, st.sampled_from([True, False, None]), st.sampled_from([20, 80]), st.sampled_from([2, 4]))
def test_what_pyyaml_writes_reads_back_the_same(value: Any, flow: bool | None, width: int, indent: int) -> None:
    text = yaml.dump(
        value, Dumper=NoAliases, default_flow_style=flow, width=width, indent=indent, allow_unicode=True,
        sort_keys=False,
    )  # fmt: skip
    assume("? " not in text)  # PyYAML writes a long key as a complex one, which we do not read
    assume(not {"\x85", "\u2028", "\u2029"} & set(text))  # line breaks of YAML 1.1 that nobody types
    assert same(loads(text), value)


class NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


@given(
    st.sampled_from(["|", ">", "|-", ">-", "|+", ">+", "|2", ">2-"]),
    st.lists(st.sampled_from(["text", "", "  more", "# no comment", "- item", "k: v", " ", "\ttab"]), max_size=6),
    st.booleans(),
)
def test_blocks_of_text_fold_and_end_as_in_pyyaml(header: str, lines: list[str], more: bool) -> None:
    leading = lines[: next((at for at, line in enumerate(lines) if line.strip(" ")), len(lines))]
    assume(not any(leading))  # spaces alone, before the first text: YAML does not say what they mean
    text = f"a: {header}\n" + "".join(f"  {line}\n" for line in lines) + ("b: 1\n" if more else "")
    try:
        expected = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    assert same(loads(text), expected)


def test_floats_keep_their_last_bit() -> None:
    for number in (0.1, 1e-7, 1e16, -0.0, 5e-324, math.pi, 1.7976931348623157e308):
        assert same(loads(dumps(number)), number)
        assert str(loads(dumps(number))) == str(number)


def test_a_few_lines_that_stand_for_more_than_any_memory_holds_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert loads("\n".join(lines[:3]))["a2"][9][9][9] == "x"
    with pytest.raises(YamlError, match="more than 1000000 values"):
        loads("\n".join(lines))


@pytest.mark.parametrize("levels", [65, 300, 100_000])
def test_what_is_nested_too_deeply_is_refused(levels: int) -> None:
    with pytest.raises(YamlError, match="nested"):
        loads("[" * levels + "]" * levels)
    with pytest.raises(YamlError, match="nested"):
        loads("\n".join(["a0: &a0 []"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, levels)]))
