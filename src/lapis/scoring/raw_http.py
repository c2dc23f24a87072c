"""The request an entry script marked with `rawhttp` is given, and the answer one may give with a status of its own."""

from __future__ import annotations

import io
import json
from typing import Any, Callable, Iterable, Iterator, Mapping, TypeVar

RAW = "_lapis_raw_http"  # what `rawhttp` leaves on a function

_Function = TypeVar("_Function", bound=Callable[..., Any])


def rawhttp(func: _Function) -> _Function:
    """Mark `run(request)`: it is given an AMLRequest and takes every method that /score does."""
    setattr(func, RAW, True)
    return func


class Headers:
    """Names and values as they came; a name is found whatever its case."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = [(str(name), str(value)) for name, value in pairs]

    def get(self, name: str, default: str | None = None) -> str | None:
        return next((value for each, value in self._pairs if each.lower() == name.lower()), default)

    def getlist(self, name: str) -> list[str]:
        return [value for each, value in self._pairs if each.lower() == name.lower()]

    get_all = getlist

    def add(self, name: str, value: Any) -> None:
        self._pairs.append((name, str(value)))

    def set(self, name: str, value: Any) -> None:
        self.remove(name)
        self.add(name, value)

    def remove(self, name: str) -> None:
        self._pairs = [pair for pair in self._pairs if pair[0].lower() != name.lower()]

    def update(self, more: Mapping[str, Any]) -> None:
        for name, value in more.items():
            self.set(name, value)

    def setdefault(self, name: str, value: Any) -> str:
        if name not in self:
            self.add(name, value)
        return self[name]

    def items(self) -> list[tuple[str, str]]:
        return list(self._pairs)

    def keys(self) -> list[str]:
        return [name for name, _ in self._pairs]

    def values(self) -> list[str]:
        return [value for _, value in self._pairs]

    def __getitem__(self, name: str) -> str:
        found = self.getlist(name)
        if not found:
            raise KeyError(name)
        return found[0]

    __setitem__ = set
    __delitem__ = remove

    def __contains__(self, name: object) -> bool:
        return bool(self.getlist(str(name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"


class Fields(dict):  # type: ignore[type-arg]
    """Fields of a query or a form: the first value by its name, all of them with `getlist`."""

    def __init__(self, pairs: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self._all: dict[str, list[Any]] = {}
        for name, value in pairs:
            self._all.setdefault(name, []).append(value)
            self.setdefault(name, value)

    def getlist(self, name: str) -> list[Any]:
        return list(self._all.get(name, []))

    def get(self, name: Any, default: Any = None, type: Any = None) -> Any:
        value = super().get(name, default)
        if type is None or value is None:
            return value
        try:
            return type(value)
        except ValueError:
            return default


class AMLRequest:
    """One HTTP request as it came."""

    def __init__(self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self.method = method
        self.headers = Headers(headers)
        self.data = body
        self.path, _, query = target.partition("?")
        self.query_string = query.encode()
        self._parsed: dict[str, Any] = {}

    @property
    def full_path(self) -> str:
        return f"{self.path}?{self.query_string.decode()}"

    @property
    def url(self) -> str:
        query = self.query_string.decode()
        return self.base_url + (f"?{query}" if query else "")

    @property
    def base_url(self) -> str:
        return f"http://{self.host}{self.path}"

    @property
    def host(self) -> str:
        return str(self.headers.get("Host", "localhost"))

    @property
    def content_type(self) -> str | None:
        value: str | None = self.headers.get("Content-Type")
        return value

    @property
    def mimetype(self) -> str:
        return (self.content_type or "").partition(";")[0].strip().lower()

    @property
    def content_length(self) -> int:
        return len(self.data)

    @property
    def is_json(self) -> bool:
        return self.mimetype == "application/json" or self.mimetype.endswith("+json")

    def get_data(self, cache: bool = True, as_text: bool = False, parse_form_data: bool = False) -> bytes | str:
        return self.data.decode("utf-8", "replace") if as_text else self.data

    def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        if not force and not self.is_json:
            if silent:
                return None
            raise ValueError(f"The body is not declared as JSON: its Content-Type is {self.content_type!r}.")
        try:
            return json.loads(self.data)
        except ValueError:
            if silent:
                return None
            raise

    @property
    def json(self) -> Any:
        return self.get_json()

    @property
    def stream(self) -> io.BytesIO:
        return io.BytesIO(self.data)

    @property
    def args(self) -> Fields:
        found: Fields = self._once("args", lambda: Fields(_pairs(self.query_string.decode())))
        return found

    @property
    def form(self) -> Fields:
        return self._form()[0]

    @property
    def files(self) -> Fields:
        return self._form()[1]

    @property
    def values(self) -> Fields:
        return Fields([*self.args.items(), *self.form.items()])

    @property
    def cookies(self) -> dict[str, str]:
        from http.cookies import SimpleCookie

        return {name: each.value for name, each in SimpleCookie(self.headers.get("Cookie", "")).items()}

    def _form(self) -> tuple[Fields, Fields]:
        found: tuple[Fields, Fields] = self._once("form", self._parse_form)
        return found

    def _parse_form(self) -> tuple[Fields, Fields]:
        if self.mimetype == "application/x-www-form-urlencoded":
            return Fields(_pairs(self.data.decode("utf-8", "replace"))), Fields()
        if self.mimetype == "multipart/form-data":
            return _parts(self.content_type or "", self.data)
        return Fields(), Fields()

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._parsed:
            self._parsed[name] = make()
        return self._parsed[name]


class AMLResponse:
    """An answer with a status and headers of its own."""

    def __init__(
        self,
        message: Any,
        status_code: int,
        response_headers: Mapping[str, Any] = {},  # noqa: B006 - the signature of SDK v1; it is not changed
        json_str: bool = False,
        run_function_failed: bool = False,
    ) -> None:
        self.status_code = int(status_code)
        self.headers = Headers([("Content-Type", "application/json" if json_str else "text/html; charset=utf-8")])
        self.headers.add("x-ms-run-function-failed", bool(run_function_failed))
        for name, value in (response_headers or {}).items():
            self.headers.remove(name)
            for each in str(value).split(","):
                self.headers.add(name, each.strip())
        self.set_data(json.dumps(message) if json_str else message)

    def get_data(self, as_text: bool = False) -> bytes | str:
        return self.data.decode("utf-8", "replace") if as_text else self.data

    def set_data(self, value: Any) -> None:
        self.data = bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else str(value).encode()

    @property
    def status(self) -> str:
        return str(self.status_code)

    @property
    def content_type(self) -> str | None:
        return self.headers.get("Content-Type")

    @content_type.setter
    def content_type(self, value: str) -> None:
        self.headers.set("Content-Type", value)

    mimetype = content_type


def _pairs(text: str) -> list[tuple[str, str]]:
    from urllib.parse import parse_qsl

    return parse_qsl(text, keep_blank_values=True)


def _parts(content_type: str, body: bytes) -> tuple[Fields, Fields]:
    """Fields and files of a multipart form."""
    from email import message_from_bytes

    boundary = message_from_bytes(f"Content-Type: {content_type}\n\n".encode()).get_param("boundary")
    fields, files = [], []
    for part in (b"\r\n" + body).split(f"\r\n--{boundary}".encode())[1:]:
        head, found, content = part.partition(b"\r\n\r\n")
        described = message_from_bytes(head.strip())
        name, file_name = described.get_param("name", header="content-disposition"), described.get_filename()
        if not found or name is None:
            continue
        if file_name is None:
            fields.append((str(name), content.decode("utf-8", "replace")))
        else:
            files.append((str(name), UploadedFile(content, file_name, described.get_content_type())))
    return Fields(fields), Fields(files)


class UploadedFile(io.BytesIO):
    """A file of a form: read it, or `save` it."""

    def __init__(self, content: bytes, filename: str, content_type: str) -> None:
        super().__init__(content)
        self.filename = filename
        self.content_type = self.mimetype = content_type

    def save(self, destination: Any) -> None:
        if hasattr(destination, "write"):
            destination.write(self.getvalue())
            return
        with open(destination, "wb") as file:
            file.write(self.getvalue())
