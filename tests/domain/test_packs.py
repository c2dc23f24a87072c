"""A pack's header says where each blob lies, and a pack that is not whole is told apart."""

from __future__ import annotations

import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapis.domain import frames, packs
from lapis.errors import UserErrorException


def named(contents: list[bytes]) -> list[tuple[str, bytes]]:
    return [(hashlib.sha256(content).hexdigest(), content) for content in contents]


@given(st.lists(st.binary(max_size=50), unique=True, max_size=20))
def test_every_blob_lies_where_the_header_says(contents: list[bytes]) -> None:
    pack = packs.encode(named(contents))
    places = packs.read_places(io.BytesIO(pack))
    assert [pack[start : start + size] for start, size in places.values()] == contents
    assert list(places) == [digest for digest, _ in named(contents)]


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_what_lies_in_a_pack_is_what_travels(contents: list[bytes]) -> None:
    sent = packs.decode(*frames.decode(packs.encode(named(contents))))
    assert [(digest, bytes(content)) for digest, content in sent] == named(contents)


@pytest.mark.parametrize("cut", [0, 1, 40, -12, -1])
def test_a_pack_that_was_cut_short_is_not_taken_for_whole(cut: int) -> None:
    with pytest.raises(ValueError):
        packs.read_places(io.BytesIO(packs.encode(named([b"one", b"a longer one"]))[:cut]))


@pytest.mark.parametrize("damaged", [b"\0" * 100, b"[]\n", b'{"hashes":[]}\n', b'{"hashes":["a"],"sizes":["b"]}\nx'])
def test_what_does_not_begin_with_a_header_is_no_pack(damaged: bytes) -> None:
    with pytest.raises(ValueError):
        packs.read_places(io.BytesIO(damaged))


def test_a_body_must_name_one_hash_for_each_part() -> None:
    with pytest.raises(UserErrorException, match="one hash for each part"):
        packs.decode(*frames.decode(frames.encode({"hashes": ["a"]}, [b"1", b"2"])))
