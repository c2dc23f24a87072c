"""What in a text, a definition or a job is a secret, and what stands in its place where it is kept or shown.

A secret is recognised by where it stands, never by what it looks like: docs/secrets.md has the list. A value that is
taken for one by mistake does no harm: the job gets it all the same, only those who look see stars.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Callable

MASK = "********"
SEALED = re.compile(r"lapis-sealed:[A-Za-z0-9_-]+")  # what only the server can open, for one workspace

_FIELDS = frozenset(
    "password passwd accountkey sastoken clientsecret secretkey secretaccesskey accesskey authtoken githubtoken "
    "accesstoken refreshtoken apikey connectionstring privatekey serviceprincipalpassword".split()
)
_VARIABLES = ("environment_variables", "environmentVariables")
_ARGUMENTS = ("arguments", "command")
_SURELY_NAMES = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|PWD|SECRET|CREDENTIALS?|CONNECTION_?STRING|(?:API|ACCESS|ACCOUNT|PRIVATE)_?KEY)(?:$|_)"
)
_LIKELY_NAMES = re.compile(r"(?:^|_)(?:KEY|TOKEN|SAS|SIGNATURE)$")
_NO_SECRET = re.compile(r"[-+]?[0-9.]*|true|false|yes|no|none|null|on|off", re.IGNORECASE)
_OPTION = re.compile(r"--?([A-Za-z][\w-]*)(=?)(.*)", re.DOTALL)
_WORD = re.compile(
    r"(?P<before>(?<![\w-])(?:--?)?(?P<name>[A-Za-z][\w-]*)(?:=|(?<=[\w])[ \t]+))(?P<value>[^\s\"';&|]+)"
)

_SIGNED = "sig|(?:x-amz-|x-goog-)?signature|x-amz-security-token|(?:access_)?token|sas|key|api[-_]?key|code"
_IN_TEXT = re.compile(
    r"(?<=://)(?P<user>[^/@:\s]*:)(?P<password>[^/@\s]+)(?=@)"  # https://user:password@host
    r"|(?<=://)(?P<alone>[^/@:\s]{8,})(?=@)"  # https://token@host
    rf"|(?P<query>[?&](?:{_SIGNED})=)(?P<signature>[^&\s\"'#]+)"
    r"|(?P<part>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature|Password|Pwd)=)(?P<of_part>[^;\s\"']+)",
    re.IGNORECASE,
)

Replace = Callable[[str], str]


def replaced(value: Any, by: Replace, known: Iterable[str] = ()) -> Any:
    """`value`, as JSON knows it, with every secret in it replaced. `known` are texts that are secrets anywhere."""
    return _Walk(by, sorted(known, key=len, reverse=True)).of(value)


def masked(value: Any, known: Iterable[str] = ()) -> Any:
    """For whoever only looks: stars for every secret, sealed ones too."""
    return _Walk(lambda _: MASK, sorted(known, key=len, reverse=True), sealed=MASK).of(value)


def starred(value: Any) -> Any:
    """What was sealed before, without looking for more."""
    return each_text(value, lambda text: SEALED.sub(MASK, text))


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: each_text(each, change) for key, each in value.items()}
    return [each_text(each, change) for each in value] if isinstance(value, (list, tuple)) else value


def is_secret_variable(name: str, value: str = "unknown") -> bool:
    """By its name. `..._KEY` and `..._TOKEN` with a number or a yes are settings: MAX_TOKEN=512."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().replace("-", "_")
    if _SURELY_NAMES.search(words):
        return bool(value)
    return _LIKELY_NAMES.search(words) is not None and _NO_SECRET.fullmatch(value) is None


class _Walk:
    def __init__(self, by: Replace, known: list[str], sealed: str | None = None) -> None:
        self._by = by
        self._known = [text for text in known if text]
        self._sealed = sealed  # what stands for a sealed text; None: it stays

    def of(self, value: Any, key: str = "") -> Any:
        kind = type(value)  # asked first: every submit comes by here, and classes of one's own are rare
        if kind is str:
            return self._text(value)
        if kind is dict or isinstance(value, Mapping):
            return {name: self._field(name, each, key) for name, each in value.items()}
        if kind is list or kind is tuple:
            return self._arguments(value) if key in _ARGUMENTS else [self.of(each, key) for each in value]
        return value

    def _field(self, name: str, value: Any, within: str) -> Any:
        if value is None or type(value) is bool:
            return value
        if not isinstance(value, str):
            return self.of(value, name)
        if within in _VARIABLES:
            return self._whole(value) if is_secret_variable(name, value) else self._text(value)
        if name.replace("_", "").replace("-", "").lower() in _FIELDS:
            return self._whole(value)
        return self._command(value) if name in _ARGUMENTS else self._text(value)

    def _whole(self, value: str) -> str:
        if not value or value == MASK:
            return value
        return (self._sealed or value) if SEALED.fullmatch(value) else self._by(value)

    def _arguments(self, words: Iterable[Any]) -> list[Any]:
        """`--password x` in two words, and `--password=x` in one."""
        found: list[Any] = []
        follows = False
        for word in words:
            option = _OPTION.fullmatch(word) if isinstance(word, str) else None
            if option is not None and option[2]:
                secret = is_secret_argument(option[1])
                word = word[: option.start(3)] + (self._whole(option[3]) if secret else self._text(option[3]))
            elif isinstance(word, str):
                word = self._whole(word) if follows and option is None else self._text(word)
            else:
                word = self.of(word)
            follows = option is not None and not option[2] and is_secret_argument(option[1])
            found.append(word)
        return found

    def _command(self, line: str) -> str:
        """A line for the shell: options, and variables that are set before the command."""

        def one(word: re.Match[str]) -> str:
            return word["before"] + self._whole(word["value"]) if is_secret_argument(word["name"]) else word[0]

        return self._text(_WORD.sub(one, line))

    def _text(self, text: str) -> str:
        if "=" in text or "@" in text:
            text = _IN_TEXT.sub(self._part, text)
        if self._sealed is not None and "lapis-sealed:" in text:
            text = SEALED.sub(self._sealed, text)
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, self._by(secret))
        return text

    def _part(self, found: re.Match[str]) -> str:
        for before, secret in (("user", "password"), ("query", "signature"), ("part", "of_part")):
            if found[secret]:
                return found[before] + self._whole(found[secret])
        return self._whole(found["alone"])


def is_secret_argument(name: str) -> bool:
    """More sparing than for variables: `--sort-key` and `--token` of a tokenizer are hyperparameters of somebody."""
    words = name.upper().replace("-", "_")
    return _SURELY_NAMES.search(words) is not None or words in ("TOKEN", "AUTH_TOKEN", "ACCESS_TOKEN", "SAS_TOKEN")
