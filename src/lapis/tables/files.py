"""Reads files as tables, block by block and in order, several blocks at once: with separators, JSON lines, Parquet.

Types are found from the beginning of the files. Where later rows do not fit them, `Wider` says so and whoever reads
starts again with wider types: what comes out does not depend on where a file was cut, and nothing is lost in silence.
"""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from lapis.errors import DatasetExecutionError
from lapis.tables.arrow import arrow_csv, arrow_dataset, arrow_json, pa, parquet
from lapis.tables.column_values import (
    MISSING,
    arrow_type,
    as_shown,
    declared,
    settled,
    shown,
    wider,
    without_empty_text,
)
from lapis.tables.types import ENCODINGS

_FIRST_BLOCK, _BLOCK = 1 << 20, 8 << 20  # bytes: a look at a table is quick, and a long table goes by in large pieces
_SAMPLED_FILES = 8
_ROWS = 1 << 16  # of a Parquet file at once
_GZIP = b"\x1f\x8b"


class Wider(Exception):
    """Rows do not fit the types that are known: these do."""

    def __init__(self, types: Mapping[str, Any]) -> None:
        self.types = dict(types)


class TableFile:
    """One file of a table; fetched when its path is first asked for."""

    def __init__(
        self, name: str, path: str, fetch: Callable[[], str] | None = None, constants: Mapping[str, Any] | None = None
    ) -> None:
        self.name = name
        self.constants = dict(constants or {})  # columns that come from its path
        self.is_here = fetch is None
        self._path, self._fetch, self._lock = path, fetch, threading.Lock()

    @property
    def path(self) -> str:
        with self._lock:
            if not self.is_here and self._fetch is not None:
                self._path, self.is_here = self._fetch(), True
            return self._path


class TableFiles:
    """What every kind of file has in common. `names` and `types` are those of the files; constants come on top."""

    names: list[str]
    types: dict[str, Any]  # as they are read

    def __init__(self, files: Sequence[TableFile], options: Mapping[str, Any], on_error: str) -> None:
        self._files, self._options, self._on_error = list(files), options, on_error
        self._declared: Mapping[str, Any] = options["types"]
        self.constants = list(self._files[0].constants) if self._files else []

    def schema(self) -> Any:
        """What users get: constants first."""
        fields = [(name, _constant(self._files[0].constants[name]).type) for name in self.constants]
        taken = set(self.constants)
        return pa.schema([*fields, *((name, self._shown(name)) for name in self.names if name not in taken)])

    def tables(self, columns: Sequence[str], wanted: Callable[[TableFile], bool], condition: Any) -> Iterator[Any]:
        """The rows of the wanted files with these columns. `condition` may be used to read less, and need not be."""
        raise NotImplementedError

    def close(self) -> None:
        """What was opened to find the columns, and is not read."""

    def widen(self, types: Mapping[str, Any]) -> None:
        for name, kind in types.items():
            if name not in self.types:
                self.names.append(name)
            self.types[name] = kind

    def _shown(self, name: str) -> Any:
        return arrow_type(self._declared[name]["type"]) if name in self._declared else shown(self.types[name])

    def _check_declared(self) -> None:
        for name in self._declared:
            if name not in self.types:
                raise DatasetExecutionError(
                    f"set_column_types names column '{name}', which is not there. Columns: {', '.join(self.names)}."
                )

    def _finished(self, table: Any, columns: Sequence[str], file: TableFile) -> Any:
        """The columns in order, as users get them."""
        made = []
        for name in columns:
            if name in file.constants:
                made.append(_repeated(_constant(file.constants[name]), table.num_rows))
            elif name not in table.column_names:
                made.append(pa.nulls(table.num_rows, self._shown(name)))
            elif name in self._declared:
                made.append(declared(table[name], self._declared[name], name, self._on_error))
            else:
                made.append(as_shown(table[name]))
        return pa.table(made, names=list(columns))


class BlockFiles(TableFiles):
    """Files of lines: cut at ends of rows, parsed by several threads, given in order."""

    def tables(self, columns: Sequence[str], wanted: Callable[[TableFile], bool], condition: Any) -> Iterator[Any]:
        def parsed(job: Any) -> Any:
            file, layout, block = job
            return self._finished(self._parsed(file, layout, block, columns), columns, file)

        return _in_order(self._jobs(wanted), parsed)

    def _jobs(self, wanted: Callable[[TableFile], bool]) -> Iterator[Any]:
        for number in _fetched([number for number, file in enumerate(self._files) if wanted(file)], self._files):
            for layout, block in self._blocks(number):
                yield self._files[number], layout, block

    def _blocks(self, number: int) -> Iterator[tuple[Any, Any]]:
        raise NotImplementedError

    def _parsed(self, file: TableFile, layout: Any, block: Any, columns: Sequence[str]) -> Any:
        raise NotImplementedError


class DelimitedFiles(BlockFiles):
    def __init__(self, files: Sequence[TableFile], options: Mapping[str, Any], on_error: str) -> None:
        super().__init__(files, options, on_error)
        # a line end that separates leaves one column of whole lines: nothing in a line separates or quotes
        lines = options["separator"] == "\n"
        self._separator = "\x1f" if lines else options["separator"]
        self._quoting: Any = csv.QUOTE_NONE if lines else csv.QUOTE_MINIMAL
        self._header = options["header"]
        self.names, self.types = [], {}
        self._find_names()
        self._find_types()
        self._check_declared()

    def _find_names(self) -> None:
        combine = self._header == "COMBINE_ALL_FILES_HEADERS"
        for number in range(len(self._files)):
            for layout, _ in self._blocks(number):
                self.names.extend(name for name in layout if name not in self.names)
                break
            if self.names and not combine:
                return
        if not self.names:
            raise DatasetExecutionError(f"{self._files[0].name} is empty: it has no rows and no names of columns.")

    def _find_types(self) -> None:
        as_text = not self._options["infer"]
        start = pa.string() if as_text else pa.null()
        self.types = {name: pa.string() if name in self._declared else start for name in self.names}
        if as_text:
            return
        for number, file in enumerate(self._files):
            for layout, block in self._blocks(number):
                self.types.update(self._inferred(file, layout, block, layout))
                return

    def _blocks(self, number: int) -> Iterator[tuple[list[str], Any]]:
        """Blocks of whole rows without the header, each with the names of its columns."""
        file = self._files[number]
        own = self._header not in ("NO_HEADERS", "ONLY_FIRST_FILE_HAS_HEADERS") or (
            self._header == "ONLY_FIRST_FILE_HAS_HEADERS" and number == 0
        )
        names = self.names
        first = True
        with _opened(file, self._options["encoding"]) as stream:
            for block in _row_blocks(stream):
                if first:
                    first = False
                    end = _first_row_end(block)
                    cells = self._cells(file, bytes(block.slice(0, end)))
                    if own:
                        names = distinct(cells)
                        self._check_header(file, names)
                        block = block.slice(end)
                    elif not names:
                        names = [f"Column{i + 1}" for i in range(len(cells))]
                yield names, block

    def _cells(self, file: TableFile, row: bytes) -> list[str]:
        try:
            text = row.decode("utf-8")
        except UnicodeDecodeError:
            raise _not_text(file, self._options["encoding"]) from None
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=self._separator, quoting=self._quoting)
        return next((cells for cells in rows if cells), [])

    def _check_header(self, file: TableFile, names: list[str]) -> None:
        if not self.names or self._header == "COMBINE_ALL_FILES_HEADERS" or set(names) == set(self.names):
            return
        raise DatasetExecutionError(
            f"{file.name} has the columns {', '.join(names)}; the first file has {', '.join(self.names)}. "
            "header=PromoteHeadersBehavior.COMBINE_ALL_FILES_HEADERS reads files with different columns."
        )

    def _parsed(self, file: TableFile, layout: list[str], block: Any, columns: Sequence[str]) -> Any:
        chosen = [name for name in columns if name in layout and name not in file.constants]
        types = {name: self.types[name] for name in chosen}
        try:
            table = self._read(layout, block, chosen, types)
        except pa.ArrowInvalid:
            found = {name: kind for name, kind in self._inferred(file, layout, block, chosen).items()
                     if name not in self._declared and self._options["infer"]}  # fmt: skip
            widened = {name: wider(types[name], kind) for name, kind in found.items()}
            if any(widened[name] != types[name] for name in widened):
                raise Wider(widened) from None
            table = self._read(layout, self._mended(file, layout, block), chosen, types)
        if self._options["empty_as_string"]:
            return table
        for number, field in enumerate(table.schema):
            if pa.types.is_string(field.type):
                table = table.set_column(number, field.name, without_empty_text(table[number]))
        return table

    def _inferred(self, file: TableFile, layout: list[str], block: Any, chosen: Sequence[str]) -> dict[str, Any]:
        fixed = {name: pa.string() for name in chosen if name in self._declared or not self._options["infer"]}
        try:
            table = self._read(layout, block, chosen, fixed)
        except pa.ArrowInvalid:
            try:
                table = self._read(layout, self._mended(file, layout, block), chosen, fixed)
            except pa.ArrowInvalid as error:
                if "UTF8" in str(error):
                    raise _not_text(file, self._options["encoding"]) from None
                raise DatasetExecutionError(f"{file.name} cannot be read: {error}", error) from None
        found = {field.name: settled(field.type) for field in table.schema}
        if any(pa.types.is_binary(kind) for kind in found.values()):
            raise _not_text(file, self._options["encoding"])
        if self._options["empty_as_string"]:
            found = {name: pa.string() if pa.types.is_null(kind) else kind for name, kind in found.items()}
        return found

    def _read(self, layout: list[str], block: Any, chosen: Sequence[str], types: Mapping[str, Any]) -> Any:
        if not block.size:
            return pa.table([pa.nulls(0, types.get(name, pa.null())) for name in chosen], names=list(chosen))
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            # one thread each, and the block whole: the threads are ours
            read_options=arrow_csv.ReadOptions(column_names=layout, use_threads=False, block_size=block.size + 1),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._separator,
                quote_char=False if self._quoting == csv.QUOTE_NONE else '"',
                newlines_in_values=True,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict(types), include_columns=list(chosen) or layout[:1], null_values=sorted(MISSING)
            ),
        )

    def _mended(self, file: TableFile, layout: list[str], block: Any) -> Any:
        """Rows that are too short get missing values; rows that are too long are an error."""
        try:
            text = bytes(block).decode("utf-8")
        except UnicodeDecodeError:
            raise _not_text(file, self._options["encoding"]) from None
        out = io.StringIO()
        writer = csv.writer(out, delimiter=self._separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
        try:
            for row in csv.reader(io.StringIO(text, newline=""), delimiter=self._separator, quoting=self._quoting):
                if not row:
                    continue
                if any(row[len(layout) :]):
                    raise DatasetExecutionError(
                        f"{file.name} is no table of {len(layout)} columns ({_short(', '.join(layout))}): a row has "
                        f"{len(row)}: {_short(self._separator.join(row))}"
                    )
                writer.writerow([*row, *[""] * (len(layout) - len(row))][: len(layout)])
        except csv.Error as error:
            raise DatasetExecutionError(f"{file.name} cannot be read: {error}.", error) from None
        return pa.py_buffer(out.getvalue().encode("utf-8"))


class JsonLinesFiles(BlockFiles):
    def __init__(self, files: Sequence[TableFile], options: Mapping[str, Any], on_error: str) -> None:
        super().__init__(files, options, on_error)
        self.names, self.types = [], {}
        for number in range(min(len(self._files), _SAMPLED_FILES)):
            for _, block in self._blocks(number):
                found = self._inferred(self._files[number], block)
                self.widen({name: wider(self.types.get(name, kind), kind) for name, kind in found.items()})
                break
        self.widen({name: pa.string() for name in self._declared if name not in self.types})  # it may come later
        if not self.names:
            raise DatasetExecutionError(f"{self._files[0].name} is empty: it has no rows.")

    def _blocks(self, number: int) -> Iterator[tuple[None, Any]]:
        with _opened(self._files[number], self._options["encoding"]) as stream:
            for block in _row_blocks(stream, quotes=False):
                yield None, block

    def _parsed(self, file: TableFile, layout: None, block: Any, columns: Sequence[str]) -> Any:
        chosen = [name for name in columns if name in self.types and name not in file.constants]
        types = {name: self.types[name] for name in chosen or self.names[:1]}
        all_of_them = len(types) == len(self.types)
        try:
            return _read_json(block, types, "error" if all_of_them else "ignore")
        except pa.ArrowInvalid:
            found = self._inferred(file, block)
            widened = {name: wider(self.types.get(name, kind), kind) for name, kind in found.items()
                       if all_of_them or name in types}  # fmt: skip
            if any(kind != self.types.get(name) for name, kind in widened.items()):
                raise Wider(widened) from None
            rows = [json.dumps(_fitting(row, types)) for row in self._rows(file, block)]
        return _read_json(_lines(rows), types, "ignore")

    def _inferred(self, file: TableFile, block: Any) -> dict[str, Any]:
        try:
            table = _read_json(block, None, "infer")
        except pa.ArrowInvalid:
            return self._inferred_slowly(file, block)
        return {field.name: settled(field.type) for field in table.schema}

    def _inferred_slowly(self, file: TableFile, block: Any) -> dict[str, Any]:
        """Each column on its own: one that holds more than one kind of value is text."""
        rows = self._rows(file, block)
        found = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            try:
                table = _read_json(_lines(json.dumps({name: row.get(name)}) for row in rows), None, "infer")
                found[name] = settled(table.schema.field(name).type)
            except pa.ArrowInvalid:
                found[name] = pa.string()
        return found

    def _rows(self, file: TableFile, block: Any) -> list[dict[str, Any]]:
        """Line by line; a line that is no JSON object is dropped or an error, as the user asked."""
        rows = []
        for line in bytes(block).splitlines():
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8"))
                if not isinstance(row, dict):
                    raise ValueError("it is no object")
            except ValueError as error:
                if self._options["invalid_lines"] == "drop":
                    continue
                shown_line = _short(line.decode("utf-8", "replace"))
                raise DatasetExecutionError(
                    f"{file.name} holds a line that is no JSON object ({error}): {shown_line}. "
                    "invalid_lines='drop' leaves such lines out."
                ) from None
            rows.append(row)
        return rows


class ParquetFiles(TableFiles):
    def __init__(self, files: Sequence[TableFile], options: Mapping[str, Any], on_error: str) -> None:
        super().__init__(files, options, on_error)
        self.names, self.types = [], {}
        for number in _fetched(range(len(self._files)), self._files):
            file = self._files[number]
            for field in self._schema_of(file):
                self._add(file, field.name, field.type)
        self._check_declared()

    def _schema_of(self, file: TableFile) -> Any:
        try:
            return parquet.read_schema(file.path)
        except (pa.ArrowException, OSError) as error:
            raise DatasetExecutionError(f"{file.name} is no Parquet file: {error}", error) from None

    def _add(self, file: TableFile, name: str, kind: Any) -> None:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        there = self.types.get(name, kind)
        both = wider(there, kind)
        if pa.types.is_string(both) and not all(_is_text(each) for each in (there, kind)):
            raise DatasetExecutionError(f"Column '{name}' is {kind} in {file.name}, and {there} in a file before.")
        self.widen({name: both})

    def tables(self, columns: Sequence[str], wanted: Callable[[TableFile], bool], condition: Any) -> Iterator[Any]:
        for file in self._files:
            if not wanted(file):
                continue
            found = arrow_dataset.dataset(file.path, format="parquet")
            there = [name for name in columns if name in found.schema.names and name not in file.constants]
            scanner = found.scanner(
                columns=there or found.schema.names[:1],
                filter=condition(found.schema, {*self._declared, *file.constants}),
                batch_size=_ROWS,
                batch_readahead=4,
                fragment_readahead=1,
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    table = pa.Table.from_batches([batch])
                    yield self._finished(self._cast(table), columns, file)

    def _cast(self, table: Any) -> Any:
        """To the types that hold those of all files."""
        fields = [(name, self.types[name]) for name in table.column_names]
        return (
            table.cast(pa.schema(fields)) if [field.type for field in table.schema] != [f[1] for f in fields] else table
        )


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _fetched(numbers: Sequence[int], files: Sequence[TableFile]) -> Iterable[int]:
    """The numbers in order, each when its file is here; the next ones are fetched meanwhile."""
    if all(files[number].is_here for number in numbers):
        return numbers

    def fetch(number: int) -> int:
        _ = files[number].path
        return number

    return _in_order(numbers, fetch)


def _in_order(jobs: Iterable[Any], work: Callable[[Any], Any]) -> Iterator[Any]:
    """`work` on several jobs at once; few are under way, so memory stays bounded."""
    threads = min(8, os.cpu_count() or 1)
    waiting: deque[Any] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for each in waiting:
            each.cancel()
        pool.shutdown()


class _AsUtf8(io.RawIOBase):
    """A file in another encoding, as UTF-8."""

    def __init__(self, file: TableFile, raw: Any, encoding: str, newline: str | None = "") -> None:
        self._file, self._encoding = file, encoding
        self._text = io.TextIOWrapper(raw, encoding=ENCODINGS[encoding], newline=newline)

    def readinto(self, into: Any) -> int:
        try:
            data = self._text.read(max(1, len(into) // 4)).encode("utf-8")
        except UnicodeError:
            raise _not_text(self._file, self._encoding) from None
        into[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._text.close()
        super().close()


def _opened(file: TableFile, encoding: str) -> Any:
    """Its bytes as UTF-8, unpacked."""
    raw: Any = open(file.path, "rb")
    start = raw.peek(4096)[:4096]
    if start[:2] == _GZIP:
        import gzip

        raw.close()
        raw = io.BufferedReader(gzip.open(file.path))
        start = raw.peek(4096)[:4096]
    if b"\0" in start and encoding not in ("utf16", "utf32"):
        raw.close()
        raise DatasetExecutionError(
            f"{file.name} is no text (it holds zero bytes), so it cannot be read as a table. UTF-16 and UTF-32 need "
            "encoding='utf16' or 'utf32'."
        )
    if b"\r" in start and b"\n" not in start:
        return _AsUtf8(file, raw, "utf8bom" if encoding == "utf8" else encoding, newline=None)  # lines of an old Mac
    if encoding in ("utf8", "utf8bom"):
        if start[:3] == b"\xef\xbb\xbf":
            raw.read(3)
        return raw
    return _AsUtf8(file, raw, encoding)


def _row_blocks(stream: Any, quotes: bool = True) -> Iterator[Any]:
    """The content cut at ends of rows; the first block is small."""
    rest = b""
    size = _FIRST_BLOCK
    while True:
        block = bytearray(len(rest) + size)
        block[: len(rest)] = rest
        got = _fill(stream, memoryview(block)[len(rest) :])
        size = _BLOCK
        end = len(rest) + got
        if not got:
            if rest:
                yield pa.py_buffer(rest)
            return
        cut = _last_row_end(block, end, quotes)
        rest = bytes(memoryview(block)[cut:end])
        if cut:
            yield pa.py_buffer(block).slice(0, cut)


def _fill(stream: Any, into: Any) -> int:
    done = 0
    while done < len(into):
        got = stream.readinto(into[done:])
        if not got:
            break
        done += got
    return done


def _last_row_end(block: bytearray, end: int, quotes: bool) -> int:
    """Where the last whole row ends: after a line break that is not inside quotes, 0 if there is none."""
    last = block.rfind(b"\n", 0, end) + 1
    if not quotes or not last:
        return last
    open_quotes = block.count(b'"', 0, last) % 2
    cut = last
    while open_quotes and cut:
        before = block.rfind(b"\n", 0, cut - 1) + 1
        open_quotes ^= block.count(b'"', before, cut) % 2
        cut = before
    if not cut and end > 2 * _BLOCK:
        return last  # no value is that long: a quote stands alone somewhere
    return cut


def _first_row_end(block: Any) -> int:
    """Where the first row ends."""
    data = bytes(block.slice(0, min(block.size, _FIRST_BLOCK)))
    at, open_quotes = 0, 0
    while True:
        end = data.find(b"\n", at) + 1
        if not end:
            return int(block.size)
        open_quotes ^= data.count(b'"', at, end) % 2
        if not open_quotes and data[at:end].strip():
            return end
        at = end


def distinct(cells: Sequence[str]) -> list[str]:
    """Names of columns: one that is empty is numbered, one that was there before gets a number too."""
    names: list[str] = []
    for number, cell in enumerate(cells):
        name = wanted = cell.strip() or f"Column{number + 1}"
        count = 0
        while name in names:
            count += 1
            name = f"{wanted}_{count}"
        names.append(name)
    return names


def _read_json(block: Any, types: Mapping[str, Any] | None, unexpected: str) -> Any:
    if not bytes(block.slice(0, min(4096, block.size))).strip() and not bytes(block).strip():
        return pa.table({name: pa.nulls(0, kind) for name, kind in (types or {}).items()})
    return arrow_json.read_json(
        pa.BufferReader(block),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=block.size + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=None if types is None else pa.schema(list(types.items())),
            unexpected_field_behavior=unexpected,
        ),
    )


def _lines(rows: Iterable[str]) -> Any:
    return pa.py_buffer("".join(row + "\n" for row in rows).encode("utf-8"))


def _fitting(row: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """In a column of text everything is text."""
    made = {}
    for name, kind in types.items():
        value = row.get(name)
        text = pa.types.is_string(kind) and value is not None and not isinstance(value, str)
        made[name] = json.dumps(value) if text else value
    return made


def _constant(value: Any) -> Any:
    return pa.scalar(value, pa.string() if isinstance(value, str) else pa.timestamp("us"))


def _repeated(value: Any, count: int) -> Any:
    return pa.nulls(count, value.type).fill_null(value) if count else pa.nulls(0, value.type)


def _not_text(file: TableFile, encoding: str) -> DatasetExecutionError:
    return DatasetExecutionError(
        f"{file.name} is no {encoding} text. Say which it is with encoding=; known: {', '.join(ENCODINGS)}."
    )


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "..."
