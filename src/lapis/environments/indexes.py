"""Which package indexes uv asks, and in what order: what a private one has is never taken from the public one.

pip takes the best version of all indexes, so whoever publishes the name of a private package with a higher version is
installed in its place. uv takes a package from the first index that knows its name; here the open ones come last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from lapis.machine import pip_settings

# Where everybody may publish under any name that is free, and mirrors of that.
_PYPI = "https://pypi.org/simple"
_OPEN = ("pypi.org", "pypi.python.org", "test.pypi.org", "testpypi.python.org", "mirrors.aliyun.com",
         "pypi.tuna.tsinghua.edu.cn", "pypi.mirrors.ustc.edu.cn", "mirrors.cloud.tencent.com", "pypi.doubanio.com",
         "repo.huaweicloud.com", "mirrors.bfsu.edu.cn")  # fmt: skip
# Where one project publishes its own: they hold some version of much else, and must not hide the others.
_OF_ONE_PROJECT = ("download.pytorch.org", "pypi.nvidia.com", "pypi.ngc.nvidia.com")
_DEFAULT = ("--index-url", "--default-index")
_MORE = ("--extra-index-url", "--index")
_DEFAULT_SET, _MORE_SET = ("UV_DEFAULT_INDEX", "UV_INDEX_URL"), ("UV_INDEX", "UV_EXTRA_INDEX_URL")
_STRATEGY = "UV_INDEX_STRATEGY"


def arranged(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """uv's arguments and variables, the same indexes named in the order in which they are to be asked.

    Indexes of the server's settings stay beside those that a definition names: uv itself would forget them.
    """
    default, more, rest = "", [], []
    words = iter(arguments)
    for word in words:
        if word in _DEFAULT:
            default = next(words)
        elif word in _MORE:
            more.append(next(words))
        else:
            rest.append(word)
    default = default or next((environment[name] for name in _DEFAULT_SET if environment.get(name)), "")
    more += [each for name in _MORE_SET for each in environment.get(name, "").split()]
    kept = {name: value for name, value in environment.items() if name not in (*_DEFAULT_SET, *_MORE_SET)}
    kept.update(_as_variables(default, list(dict.fromkeys(more))))
    strategy = _strategy([default or _PYPI, *more])
    if strategy and not pip_settings.uv_file_names_indexes(environment):
        kept.setdefault(_STRATEGY, strategy)
    return rest, kept


def _strategy(indexes: list[str]) -> str:
    """uv's own, empty here, but for indexes between which a name cannot be confused."""
    foreign = {each for each in indexes if _host(each) not in _OF_ONE_PROJECT}
    if len(foreign) < 2:
        return "unsafe-best-match"  # as pip does
    if all(each.startswith("file:") or _host(each) in _OPEN for each in foreign):
        return "unsafe-first-match"  # folders are a stock: what lies there counts first, what is lacking comes after
    return ""


def _as_variables(default: str, more: list[str]) -> dict[str, str]:
    open_ones = [each for each in more if _host(each) in _OPEN]
    if default and open_ones and _host(default) not in _OPEN:  # pip.conf often has it this way round
        more = [default, *(each for each in more if each not in open_ones), *open_ones[:-1]]
        default = open_ones[-1]
    more.sort(key=lambda each: _host(each) in _OPEN)
    found = {"UV_DEFAULT_INDEX": default, "UV_INDEX": " ".join(more)}
    return {name: value for name, value in found.items() if value}


def _host(index: str) -> str:
    """Of an address, or of `name=address`."""
    address = (
        index.partition("=")[2] if "://" in index.partition("=")[2] and "/" not in index.partition("=")[0] else index
    )
    return (urlsplit(address).hostname or "").lower()
