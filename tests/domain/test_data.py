"""The rules of data: names, addresses, patterns, and the steps that choose among files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapis.domain import data
from lapis.domain.data import LOCAL, File, apply_steps, fixed_part, glob_matcher, mirrored, output_place, web_path
from lapis.errors import UserErrorException

# -- names


@pytest.mark.parametrize("name", ["mnist", "_x", "A9", "x" * 200])
def test_an_input_may_have_the_name_of_a_variable(name: str) -> None:
    assert data.check_input_name(name) == name == data.check_output_name(name)


@pytest.mark.parametrize("name", ["", "9x", "a-b", "a b", "é", None, 5, "a\n", "PATH", "AZUREML_RUN_ID", "LAPIS_HOME"])
def test_an_input_may_not_have_another_name(name: Any) -> None:
    with pytest.raises(UserErrorException, match="Input name"):
        data.check_input_name(name)
    with pytest.raises(UserErrorException, match="Output name"):
        data.check_output_name(name)


@pytest.mark.parametrize("name", ["mnist dataset", "a/b", "ü", "x" * 255])
def test_the_name_of_a_dataset_is_free(name: str) -> None:
    assert data.check_dataset_name(name) == name


@pytest.mark.parametrize("name", ["", "  ", "x" * 256, "a\nb", None, 5])
def test_the_name_of_a_dataset_is_text_that_can_be_shown(name: Any) -> None:
    with pytest.raises(UserErrorException, match="Dataset name"):
        data.check_dataset_name(name)


@pytest.mark.parametrize("name", ["", "a-b", "a b", "x" * 256, None, 5, "é"])
def test_the_name_of_a_datastore_is_letters_digits_and_underscores(name: Any) -> None:
    with pytest.raises(UserErrorException, match="Datastore name"):
        data.check_datastore_name(name)


@pytest.mark.parametrize("path", ["/data/mnist", "data", "a/b"])
def test_a_place_on_the_compute_is_absolute_or_below_the_working_folder(path: str) -> None:
    assert data.check_path_on_compute(path) == path


@pytest.mark.parametrize("path", ["../x", "/", "/a/../b", "a/../..", "a\0b", 5])
def test_a_place_on_the_compute_does_not_climb(path: Any) -> None:
    with pytest.raises(UserErrorException):
        data.check_path_on_compute(path)


def test_an_output_goes_to_a_place_of_its_run() -> None:
    assert output_place(None, "r1", "out") == "dataset/r1/out"
    assert output_place("/a/{output-name}/{run-id}/", "r1", "out") == "a/out/r1"
    with pytest.raises(UserErrorException):
        output_place("../{run-id}", "r1", "out")
    with pytest.raises(UserErrorException):
        output_place(5, "r1", "out")


# -- addresses


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://host/a/b.gz", "/http%3A/%2Fhost/a/b.gz"),
        ("https://host:8080/b", "/https%3A/%2Fhost%3A8080/b"),
        ("http://host/a.csv?sig=1", "/http%3A/%2Fhost/a.csv"),
        ("http://host", "/http%3A/%2Fhost/index"),
        ("http://host/a/", "/http%3A/%2Fhost/a/index"),
        ("http://host//a///b", "/http%3A/%2Fhost/a/b"),
    ],
)
def test_a_web_file_is_laid_as_sdk_v1_lays_it(url: str, path: str) -> None:
    assert web_path(url) == path


@pytest.mark.parametrize("url", ["http://", "http:///a", "http://h/../x", "http://h/a/../../x", "http://h/a\\b"])
def test_an_address_without_a_host_or_that_climbs_is_refused(url: str) -> None:
    with pytest.raises(UserErrorException):
        web_path(url)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(UserErrorException) as caught:
        web_path("http://me:SECRET@host/a")
    assert "SECRET" not in str(caught.value)


def test_the_well_known_address_of_mnist_is_asked_for_where_it_is_today() -> None:
    assert mirrored("http://yann.lecun.com/exdb/mnist/x.gz", None).endswith("/mnist/x.gz")
    assert mirrored("http://yann.lecun.com/exdb/mnist/x.gz", None) != "http://yann.lecun.com/exdb/mnist/x.gz"
    assert mirrored("http://elsewhere/x", None) == "http://elsewhere/x"


# -- patterns


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("a/*.txt", ["a/b.txt", "a/.txt"], ["a/b/c.txt", "b.txt", "a/b.txt2"]),
        ("a/**", ["a/b", "a/b/c"], ["b/a"]),
        ("a/**/*.txt", ["a/b.txt", "a/b/c.txt"], ["a/b.csv", "b.txt"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax"]),
        ("a?c", ["abc"], ["a/c", "ac"]),
        ("[ab]x", ["ax", "bx"], ["cx"]),
        ("[!ab]x", ["cx"], ["ax"]),
        ("a.b+c", ["a.b+c"], ["aXb+c", "a.bbc"]),
        ("a[", ["a["], ["a"]),
    ],
)
def test_a_pattern_matches_what_people_mean(pattern: str, fits: list[str], fails: list[str]) -> None:
    matches = glob_matcher(pattern).match
    assert all(matches(name) for name in fits) and not any(matches(name) for name in fails)


@given(st.text("abz[]!^-*?/\\\n.", max_size=12))
def test_a_pattern_is_made_of_any_text_or_refused_with_a_reason(text: str) -> None:
    try:
        glob_matcher(text).match("a/b")
    except UserErrorException as error:
        assert "cannot be read" in error.message


def test_a_range_that_runs_backwards_is_refused() -> None:
    with pytest.raises(UserErrorException, match="cannot be read: bad character range z-a"):
        glob_matcher("[z-a]")


def test_the_fixed_part_of_a_pattern_is_the_folders_before_its_first_wildcard() -> None:
    assert fixed_part("a/b/*.txt") == "a/b"
    assert fixed_part("*/b") == "" == fixed_part("**")
    assert fixed_part("a/b.txt") == "a/b.txt"


# -- steps

FILES = [File(f"/{number}", LOCAL, f"/x/{number}") for number in range(100)]


def test_skip_and_take_choose_from_the_front() -> None:
    chosen = apply_steps(FILES, [{"op": "skip", "count": 2}, {"op": "take", "count": 3}])
    assert chosen == FILES[2:5]
    assert apply_steps(FILES, [{"op": "skip", "count": 1000}]) == []
    assert apply_steps(FILES, [{"op": "take", "count": 1000}]) == FILES


@given(st.integers(0, 2**31), st.floats(0, 1))
def test_the_parts_of_a_split_share_nothing_and_lose_nothing(seed: int, part: float) -> None:
    step = {"op": "split", "percentage": part, "seed": seed}
    first, second = (apply_steps(FILES, [dict(step, part=number)]) for number in (0, 1))
    assert sorted(first + second) == sorted(FILES) and not set(first) & set(second)


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    def sample(seed: int) -> list[File]:
        return apply_steps(FILES, [{"op": "sample", "probability": 0.5, "seed": seed}])

    assert sample(1) == sample(1) != sample(2)
    assert 20 < len(sample(1)) < 80


def test_a_step_of_a_later_release_is_an_error_that_names_it() -> None:
    with pytest.raises(UserErrorException, match="'shuffle' is not known"):
        apply_steps(FILES, [{"op": "shuffle"}])


# -- mounts

GB = 10**9


@pytest.mark.parametrize(
    ("asked", "files", "size", "missing", "room", "how", "why"),
    [
        ("download", 1, 900 * GB, 900 * GB, 40 * GB, "download", "LAPIS_MOUNT is download"),
        ("stream", 9, 5, 5, 40 * GB, "stream", "LAPIS_MOUNT is stream"),
        ("auto", 1, 20 * GB, 0, 40 * GB, "download", "all of it is in the cache"),
        ("auto", 100, 3 * GB, 1 * GB, 2 * GB, "stream", "the cache has room for 2.0 GB"),
        ("auto", 1, 10 * GB, 10 * GB, 40 * GB, "download", "it is not more than 10 GB"),
        ("auto", 1, 30 * GB, 1 * GB, 40 * GB, "download", "what is missing of it is not more than 10 GB"),
        ("auto", 10, 11 * GB, 11 * GB, 40 * GB, "stream", "more than 10 GB"),
        ("auto", 11_000, 11 * GB, 11 * GB, 40 * GB, "download", "files below 8 MB come faster together"),
    ],
)
def test_a_mount_is_streamed_where_that_is_faster_or_nothing_else_fits(
    asked: str, files: int, size: int, missing: int, room: int, how: str, why: str
) -> None:
    chosen, reason = data.delivery(asked, files, size, missing, room)
    assert chosen == how and why in reason
