"""Files from the web: fetched once, whole or not at all, resumed, and an error that tells one fault from another."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lapis.errors import NotFound, UserErrorException
from lapis.files import web_cache
from lapis.files.web_cache import WebCache
from tests.web import Web

LARGE = bytes(range(256)) * 4096 * 3  # three pieces, once a piece is 1 MB


class InterruptedByTest(Exception):
    pass


@pytest.fixture
def cache(tmp_path: Path) -> WebCache:
    return WebCache(str(tmp_path / "cache"))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_cache, "PIECE", 1 << 20)


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def kept(cache: WebCache) -> list[str]:
    """Whole files and halves, not the notes beside them."""
    folder = Path(cache._folder)
    if not folder.exists():
        return []
    return sorted(path.name for path in folder.iterdir() if path.suffix in ("", ".part"))


# -- fetched


def test_a_file_is_fetched_once_and_then_found(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"hello")
    first = cache.fetch(url)
    assert cache.fetch(url) == first and content(first) == b"hello"
    assert len(web.gets("/a.txt")) == 1


def test_what_a_server_says_of_a_file_is_described(web: Web, cache: WebCache) -> None:
    assert cache.describe(web.put("/a.txt", b"hello", etag='"v1"'))[:2] == (5, '"v1"')


def test_a_changed_etag_gives_the_new_file_and_the_old_one_stays_for_who_has_it(web: Web, cache: WebCache) -> None:
    first = cache.fetch(web.put("/a.txt", b"old"))
    second = cache.fetch(web.put("/a.txt", b"new"))
    assert (content(first), content(second)) == (b"old", b"new")


def test_a_file_that_nobody_can_tell_from_a_changed_one_is_fetched_each_time(web: Web, cache: WebCache) -> None:
    assert content(cache.fetch(web.put("/a.txt", b"old", etag=None))) == b"old"
    assert content(cache.fetch(web.put("/a.txt", b"new", etag=None))) == b"new"


def test_a_copy_that_somebody_wrote_to_is_fetched_again(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"hello")
    path = cache.fetch(url)
    os.chmod(path, 0o644)
    Path(path).write_bytes(b"jello")
    assert content(cache.fetch(url)) == b"hello"


def test_two_that_want_one_file_at_once_download_it_once(web: Web, cache: WebCache) -> None:
    gate = threading.Event()
    url = web.put("/a.txt", b"hello" * 1000, gate=gate)
    with ThreadPoolExecutor(4) as threads:
        wanted = [threads.submit(cache.fetch, url) for _ in range(4)]
        gate.set()
        assert {content(each.result()) for each in wanted} == {b"hello" * 1000}
    assert len(web.gets("/a.txt")) == 1


def test_a_file_of_unknown_length_is_fetched(web: Web, cache: WebCache) -> None:
    assert content(cache.fetch(web.put("/a.txt", b"hello", says_nothing=True))) == b"hello"


@pytest.mark.parametrize("status", [400, 403, 405, 501])
def test_a_server_that_answers_no_head_is_asked_with_get(web: Web, cache: WebCache, status: int) -> None:
    url = web.put("/a.txt", b"hello", head=status)
    assert cache.describe(url)[0] == 5
    assert content(cache.fetch(url)) == b"hello"


def test_an_address_with_spaces_and_letters_of_any_alphabet_is_fetched(web: Web, cache: WebCache) -> None:
    web.put("/a%20b/%C3%BC.txt", b"hello")
    assert content(cache.fetch(web.url("/a b/ü.txt"))) == b"hello"


def test_a_large_file_comes_in_pieces_at_once(web: Web, cache: WebCache, small_pieces: None) -> None:
    told: list[tuple[int, int | None]] = []
    url = web.put("/large", LARGE)
    assert content(cache.fetch(url, lambda done, total: told.append((done, total)))) == LARGE
    assert sorted(filter(None, web.gets("/large"))) == [
        "bytes=0-1048575", "bytes=1048576-2097151", "bytes=2097152-3145727",
    ]  # fmt: skip
    assert told[-1] == (len(LARGE), len(LARGE))


def test_a_server_that_promises_parts_and_sends_the_whole_is_taken_as_it_is(
    web: Web, cache: WebCache, small_pieces: None
) -> None:
    assert content(cache.fetch(web.put("/large", LARGE, ranges_work=False))) == LARGE


# -- cut off


def test_a_download_that_is_cut_off_half_way_goes_on_from_there(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"0123456789", cut_after=4, cuts=1)
    assert content(cache.fetch(url)) == b"0123456789"
    assert web.gets("/a.txt") == [None, "bytes=4-"]


def test_a_server_without_ranges_is_asked_for_the_whole_again(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"0123456789", ranges=False, cut_after=4, cuts=1)
    assert content(cache.fetch(url)) == b"0123456789"
    assert web.gets("/a.txt") == [None, None]


def test_a_later_try_asks_for_the_missing_pieces_only(web: Web, cache: WebCache, small_pieces: None) -> None:
    url = web.put("/large", LARGE)

    def lose_patience(done: int, total: int | None) -> None:
        if done > 1 << 20:
            raise InterruptedByTest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web_cache, "STREAMS", 1)
        with pytest.raises(InterruptedByTest):
            cache.fetch(url, lose_patience)
    web.asked.clear()
    assert content(cache.fetch(url)) == LARGE
    assert "bytes=0-1048575" not in web.gets("/large")


def test_a_file_that_is_always_cut_off_is_an_error_and_nothing_half_is_used(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"0123456789", ranges=False, cut_after=4)
    with pytest.raises(UserErrorException, match="said it is 10 bytes long, but sent 4"):
        cache.fetch(url)
    assert kept(cache) == []


def test_a_length_that_is_not_true_is_an_error(web: Web, cache: WebCache) -> None:
    web.put("/a.txt", b"0123456789", cut_after=9, says_length=20)
    with pytest.raises(UserErrorException, match="said it is 20 bytes long, but sent"):
        cache.fetch(web.url("/a.txt"))
    assert kept(cache) == []


def test_a_file_that_changes_between_question_and_answer_is_an_error(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"0123456789", gate=threading.Event())

    class Fickle(WebCache):
        def ask(self, *arguments: object) -> web_cache.Said:
            said = WebCache.ask(self, *arguments)  # type: ignore[arg-type]
            web.put("/a.txt", b"another one")
            return said

    with pytest.raises(UserErrorException, match="changed while it was read"):
        Fickle(cache._folder).fetch(url)
    assert kept(cache) == []


def test_a_server_that_is_busy_for_a_moment_is_asked_again(web: Web, cache: WebCache) -> None:
    url = web.put("/a.txt", b"hello", status=503)
    timer = threading.Timer(0.3, lambda: web.put("/a.txt", b"hello"))
    timer.start()
    assert content(cache.fetch(url)) == b"hello"
    timer.join()


# -- told apart


@pytest.mark.parametrize(
    ("status", "says"), [(404, "not there"), (410, "gone"), (403, "denied"), (401, "denied"), (418, "refused")]
)
def test_missing_denied_and_refused_are_told_apart(web: Web, cache: WebCache, status: int, says: str) -> None:
    url = web.put("/data/a.txt", b"", status=status)
    with pytest.raises(UserErrorException) as caught:
        cache.fetch(url)
    assert f"{url} is {says} (status {status})" in caught.value.message
    assert f"LAPIS_URL_MIRRORS={web.url('/data/')}=<new prefix>" in caught.value.message
    assert isinstance(caught.value, NotFound) == (status in (404, 410))
    assert kept(cache) == []


def test_an_empty_file_is_told(web: Web, cache: WebCache) -> None:
    with pytest.raises(UserErrorException, match="is empty: it answers with no byte"):
        cache.describe(web.put("/a.txt", b""))


def test_a_host_that_does_not_answer_is_told(cache: WebCache) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.txt"
        with pytest.raises(UserErrorException, match=r"cannot be reached \(.*refused"):
            cache.fetch(url)


def test_what_follows_the_question_mark_is_never_shown(web: Web, cache: WebCache) -> None:
    with pytest.raises(UserErrorException) as caught:
        cache.fetch(web.url("/a.txt?sig=SECRET"))
    assert "SECRET" not in str(caught.value) and "/a.txt?..." in caught.value.message


# -- mirrors


def test_an_old_prefix_is_asked_for_at_the_new_one(web: Web, tmp_path: Path) -> None:
    web.put("/here/a.txt", b"hello")
    cache = WebCache(str(tmp_path / "c"), f"http://gone.example/there/={web.url('/here/')}")
    assert content(cache.fetch("http://gone.example/there/a.txt")) == b"hello"
    with pytest.raises(UserErrorException, match=f"there/b.txt is not there .*asked at {web.url('/here/b')}"):
        cache.fetch("http://gone.example/there/b.txt")


def test_the_longest_prefix_wins_and_the_users_come_before_the_built_in_ones(web: Web, tmp_path: Path) -> None:
    web.put("/deep/a.txt", b"deep")
    web.put("/mnist/train", b"mine")
    mirrors = (
        f"http://gone.example/={web.url('/shallow/')}, http://gone.example/x/={web.url('/deep/')},"
        f"http://yann.lecun.com/exdb/mnist/={web.url('/mnist/')}"
    )
    cache = WebCache(str(tmp_path / "c"), mirrors)
    assert content(cache.fetch("http://gone.example/x/a.txt")) == b"deep"
    assert content(cache.fetch("http://yann.lecun.com/exdb/mnist/train")) == b"mine"


def test_an_error_about_a_well_known_dead_address_names_the_mirror_that_was_tried(
    cache: WebCache, monkeypatch: pytest.MonkeyPatch, web: Web
) -> None:
    from lapis.domain import data

    monkeypatch.setitem(data.GONE, "http://yann.lecun.com/exdb/mnist/", web.url("/nothing/"))
    with pytest.raises(UserErrorException) as caught:
        cache.fetch("http://yann.lecun.com/exdb/mnist/train-images-idx3-ubyte.gz")
    said = caught.value.message
    assert f"asked at {web.url('/nothing/train-images-idx3-ubyte.gz')}" in said
    assert f"Lapis' own table of mirrors has {web.url('/nothing/')} for it" in said
    assert "LAPIS_URL_MIRRORS=http://yann.lecun.com/exdb/mnist/=<new prefix>" in said


@pytest.mark.parametrize("mirrors", ["http://a/", "a=b", "http://a/=ftp://b/", "=http://b/"])
def test_mirrors_of_the_wrong_form_are_an_error_that_shows_the_right_one(cache: WebCache, mirrors: str) -> None:
    with pytest.raises(UserErrorException, match="LAPIS_URL_MIRRORS holds .* it must be old-prefix=new-prefix"):
        WebCache(cache._folder, mirrors).describe("http://x/y")


# -- room


def test_beyond_its_limit_the_cache_clears_what_was_used_longest_ago(web: Web, tmp_path: Path) -> None:
    cache = WebCache(str(tmp_path / "c"), limit=25)
    paths = {}
    for age, name in enumerate(("a", "b")):
        paths[name] = cache.fetch(web.put(f"/{name}", name.encode() * 10))
        os.utime(paths[name], ns=((age + 1) * 10**9, os.stat(paths[name]).st_mtime_ns))
    cache.fetch(web.url("/a"))  # used again: now b is the oldest
    paths["c"] = cache.fetch(web.put("/c", b"c" * 10))
    assert [name for name, path in paths.items() if os.path.exists(path)] == ["a", "c"]


def test_what_a_run_has_a_link_to_or_is_about_to_take_is_not_cleared(web: Web, tmp_path: Path) -> None:
    cache = WebCache(str(tmp_path / "c"), limit=5)
    linked = cache.fetch(web.put("/linked", b"x" * 10))
    os.link(linked, tmp_path / "of-a-run")
    with cache.holding(web.put("/held", b"y" * 10)) as held:
        latest = cache.fetch(web.put("/latest", b"z" * 10))
        assert all(map(os.path.exists, (linked, held, latest)))
    os.remove(tmp_path / "of-a-run")
    cache.fetch(web.put("/another", b"z" * 10))
    assert not any(map(os.path.exists, (linked, held, latest)))


def test_a_half_that_nobody_finished_for_a_week_is_thrown_away(web: Web, cache: WebCache) -> None:
    cache.fetch(web.put("/a", b"x"))
    half = Path(cache._folder, "0" * 64 + ".part")
    half.write_bytes(b"half")
    os.utime(half, (0, 0))
    WebCache(cache._folder).fetch(web.put("/b", b"x"))  # by whoever comes next
    assert not half.exists()


def test_many_small_files_do_not_have_all_that_is_kept_looked_at_for_each(web: Web, tmp_path: Path) -> None:
    looks = []

    class Counting(WebCache):
        def clear(self) -> None:
            looks.append(1)
            super().clear()

    cache = Counting(str(tmp_path / "c"), limit=100_000)
    for number in range(50):
        cache.fetch(web.put(f"/{number}", b"x" * 100))
    assert 1 <= len(looks) <= 4
