"""Reads and writes the YAML of conda files and run configurations, with nothing but the standard library.

It reads what PyYAML's safe loader reads, as the same values, but for what such files do not hold: tags, keys
that are not scalars, several documents in one file. Dates stay text. What it does not read is a `YamlError`
that names the line. A key that is there twice is an error too, since one of the two would be lost.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple, Tuple

from lapis.domain.limits import YAML_DEPTH, YAML_ITEMS


class YamlError(ValueError):
    """The text is not YAML that we read. `line` counts from 1."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(f"Line {line}: {problem}")
        self.line = line


def loads(text: str) -> Any:
    """Return the value that `text` holds: dict, list, str, int, float, bool or None."""
    try:
        value = _Reader(text).document()
        _check_size(value)
    except RecursionError:
        raise YamlError("nested too deeply.", 1) from None
    return value


def _check_size(value: Any) -> None:
    """A few lines whose aliases name one another may stand for more than any memory holds."""
    items, levels = _weigh(value, {})
    if levels > YAML_DEPTH:
        raise YamlError(f"nested more than {YAML_DEPTH} levels deep.", 1)
    if items > YAML_ITEMS:
        raise YamlError(f"with what its aliases stand for it has more than {YAML_ITEMS} values.", 1)


def _weigh(value: Any, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """How many values it has, and levels. What several aliases name is looked at once."""
    if not isinstance(value, (dict, list)):
        return 1, 0
    if id(value) not in known:
        inside = [_weigh(item, known) for item in (value.values() if isinstance(value, dict) else value)]
        known[id(value)] = 1 + sum(each[0] for each in inside), 1 + max((each[1] for each in inside), default=0)
    return known[id(value)]


def dumps(value: Any) -> str:
    """Return `value` as YAML in block style, keys in their order, for `loads` and PyYAML to read back."""
    return "\n".join(_block(value, 0)) + "\n"


# Reading. Blocks go line by line; quoted text and flow collections ([a, b], {a: b}) character by character.

_Place = Tuple[int, int]  # line and column, both from 0


class _Key(NamedTuple):
    value: Any
    merge: bool
    end: int  # the column behind the colon


class _Reader:
    def __init__(self, text: str) -> None:
        text = text[1:] if text.startswith("\ufeff") else text
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.row = 0
        self.anchors: dict[str, Any] = {}

    def document(self) -> Any:
        self._keep_one_document()
        if not self._at_content():
            return None
        value = self._node(-1)
        if self._at_content():
            raise self._error("this is indented less than what it belongs to, or does not belong here.")
        return value

    def _keep_one_document(self) -> None:
        markers = [row for row, line in enumerate(self.lines) if re.match(r"(---|\.\.\.)([ \t]|$)", line)]
        if markers and self.lines[markers[0]].startswith("---") and self._only_directives_before(markers[0]):
            start = markers.pop(0)
            self.lines[:start] = [""] * start
            self.lines[start] = "   " + self.lines[start][3:]
        if not markers:
            return
        for row in range(markers[0], len(self.lines)):
            line = self.lines[row]
            if not _is_blank(line[3:] if line.startswith("...") else line):
                raise YamlError("there is more than one document; only one is understood.", row + 1)
        del self.lines[markers[0] :]

    def _only_directives_before(self, row: int) -> bool:
        return all(_is_blank(line) or line.startswith("%") for line in self.lines[:row])

    # Blocks

    def _at_content(self) -> bool:
        """Go to the next line that says something. Whether there is one."""
        while self.row < len(self.lines) and _is_blank(self.lines[self.row]):
            self.row += 1
        return self.row < len(self.lines)

    def _indent(self) -> int:
        line = self.lines[self.row]
        indent = len(line) - len(line.lstrip(" "))
        if line[indent] == "\t":
            raise self._error("indented with a tab; YAML wants spaces.")
        return indent

    def _node(self, parent: int) -> Any:
        """The node that starts on the current line; `parent` is the indentation of what it belongs to."""
        indent = self._indent()
        if self._is_item(indent):
            return self._sequence(indent)
        if self._key(indent) is not None:
            return self._mapping(indent)
        return self._inline(indent, parent)

    def _is_item(self, column: int) -> bool:
        return re.match(r"-([ \t]|$)", self.lines[self.row][column:]) is not None

    def _sequence(self, indent: int) -> list[Any]:
        items: list[Any] = []
        while self._at_content() and self._indent() == indent and self._is_item(indent):
            rest = self.lines[self.row][indent + 1 :]
            if _is_blank(rest):
                items.append(self._below(indent))
                continue
            # What follows the dash is a node of its own, and goes on below its first character.
            spaces = len(rest) - len(rest.lstrip(" \t"))
            self.lines[self.row] = " " * (indent + 1 + spaces) + rest.lstrip(" \t")
            items.append(self._node(indent))
        self._check_not_deeper(indent)
        return items

    def _mapping(self, indent: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        merged: list[Any] = []
        while self._at_content() and self._indent() == indent:
            key = None if self._is_item(indent) else self._key(indent)
            if key is None:
                raise self._error("expected 'key: value' here.")
            row = self.row
            value = self._value(key.end, indent, list_may_align=True)
            if key.merge:
                merged.append((value, row))
            else:
                self._put(found, key.value, value, row)
        self._check_not_deeper(indent)
        for value, row in merged:
            self._merge(found, value, row)
        return found

    def _put(self, found: dict[Any, Any], key: Any, value: Any, row: int) -> None:
        if isinstance(key, (list, dict)):
            raise YamlError("a key that is itself a list or a map is not understood.", row + 1)
        if key in found:
            raise YamlError(f"the key {key!r} is there twice.", row + 1)
        found[key] = value

    def _merge(self, found: dict[Any, Any], value: Any, row: int) -> None:
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise YamlError("'<<' wants a map, or a list of maps.", row + 1)
            for key, inherited in source.items():
                found.setdefault(key, inherited)

    def _check_not_deeper(self, indent: int) -> None:
        if self._at_content() and self._indent() > indent:
            raise self._error("this is indented deeper than the lines that it follows.")

    def _key(self, column: int) -> _Key | None:
        """The key that starts at `column` of the current line, or None where that is not a key."""
        line = self.lines[self.row]
        if line[column] in "\"'":
            if not _closed_on_its_line(line, column):
                return None
            value, (_, end) = self._quoted((self.row, column))
            colon = re.compile(r"[ \t]*:(?=[ \t]|$)").match(line, end)
            return _Key(value, False, colon.end()) if colon else None
        if line[column] in "[]{},&*!|>%@`#" or re.match(r"\?([ \t]|$)", line[column:]):
            return None
        text = _without_comment(line[column:])
        colon = re.search(r":(?=[ \t]|$)", text)
        if colon is None or colon.start() == 0:
            return None
        name = text[: colon.start()].rstrip(" \t")
        return _Key(_plain_value(name), name == "<<", column + colon.end())

    def _value(self, column: int, indent: int, list_may_align: bool) -> Any:
        """What stands at or after `column`, or else on the lines below."""
        rest = self.lines[self.row][column:]
        if _is_blank(rest):
            return self._below(indent, list_may_align)
        return self._inline(column + len(rest) - len(rest.lstrip(" \t")), indent, list_may_align)

    def _below(self, indent: int, list_may_align: bool = False) -> Any:
        self.row += 1
        if not self._at_content():
            return None
        column = self._indent()
        if column > indent:
            return self._node(indent)
        if list_may_align and column == indent and self._is_item(column):
            return self._sequence(indent)
        return None

    def _inline(self, column: int, indent: int, list_may_align: bool = False) -> Any:
        """The scalar, flow collection, anchor or alias at `column`, and the end of its last line."""
        line = self.lines[self.row]
        first = line[column]
        if first == "&":
            name = self._anchor_name((self.row, column))
            value = self._value(column + 1 + len(name), indent, list_may_align)
            self.anchors[name] = value
            return value
        if first in "|>":
            return self._block_scalar(line[column:], indent)
        if first in "\"'[{*":
            value, (self.row, end) = self._flow_node((self.row, column))
            if not _is_blank(self.lines[self.row][end:]):
                raise self._error(f"did not expect {self.lines[self.row][end:].strip()!r} after the value.")
            self.row += 1
            return value
        self._check_plain_start(line[column:])
        return self._plain(column, indent)

    def _anchor_name(self, place: _Place) -> str:
        row, column = place
        name = re.match(r"[^\s,\[\]{}]*", self.lines[row][column + 1 :])
        assert name is not None  # the pattern matches the empty text as well
        if not name.group():
            raise YamlError(f"a name must follow {self.lines[row][column]!r}.", row + 1)
        return name.group()

    def _check_plain_start(self, text: str) -> None:
        if text[0] == "!":
            raise self._error(f"the tag {text.split()[0]!r} is not understood.")
        if re.match(r"\?([ \t]|$)", text):
            raise self._error("a key marked with '?' is not understood.")
        if text[0] in "]},%@`" or re.match(r"[-:]([ \t]|$)", text):
            raise self._error(f"a value cannot start with {text[0]!r}; put it in quotes.")

    def _plain(self, column: int, indent: int) -> Any:
        """Unquoted text, which may go on over the following lines that are indented deeper than `indent`."""
        pieces: list[str] = []
        breaks = 0
        text = self.lines[self.row][column:]
        while True:
            piece = _without_comment(text)
            if re.search(r":([ \t]|$)", piece):
                raise self._error("a 'key: value' inside a value: indented too far, or a text to be quoted?")
            pieces += [_fold(breaks) if pieces else "", piece.strip(" \t")]
            self.row += 1
            if piece.rstrip(" \t") != text.rstrip(" \t"):
                break  # a comment ends the text
            start = self.row
            while self.row < len(self.lines) and not self.lines[self.row].strip(" \t"):
                self.row += 1
            if self.row == len(self.lines) or _is_blank(self.lines[self.row]) or self._indent() <= indent:
                break
            breaks = self.row - start
            text = self.lines[self.row].strip(" \t")
        if len(pieces) == 2:
            return _plain_value(pieces[1])
        return "".join(pieces)

    def _block_scalar(self, header: str, indent: int) -> str:
        """Text after | (lines kept) or > (lines folded), whatever it looks like."""
        marks = re.match(r"[|>](?:([1-9])([-+])?|([-+])([1-9])?)?([ \t].*)?$", header)
        if marks is None or not _is_blank(marks.group(5) or ""):
            raise self._error(f"{header.strip()!r} is not understood as the start of a block of text.")
        width = marks.group(1) or marks.group(4)
        margin = max(indent, 0) + int(width) if width else None
        self.row += 1
        lines: list[str] = []
        while self.row < len(self.lines):
            line = self.lines[self.row]
            depth = len(line) - len(line.lstrip(" "))
            if margin is None and line.strip(" "):
                margin = max(depth, indent + 1, 1)
            if line.strip(" ") and depth < (margin or 0):
                break
            lines.append(line[margin:] if margin is not None else "")
            self.row += 1
        text_end = len(lines)
        while text_end and not lines[text_end - 1]:
            text_end -= 1
        at_end_of_file = self.row == len(self.lines)
        empty = len(lines) - text_end - (1 if at_end_of_file and len(lines) > text_end else 0)
        text = (_fold_block if header[0] == ">" else "\n".join)(lines[:text_end])
        chomp = marks.group(2) or marks.group(3)
        if chomp == "-":
            return text
        ended = not (at_end_of_file and len(lines) == text_end)  # the last line of a file may lack its break
        if chomp == "+":
            return text + "\n" * (empty + (1 if text_end and ended else 0))
        return text + "\n" if text_end and ended else text

    # Flow collections and quoted text

    def _flow_node(self, place: _Place) -> tuple[Any, _Place]:
        """The node at `place` and the place behind it."""
        row, column = place
        first = self.lines[row][column]
        if first == "[":
            return self._flow_list(place)
        if first == "{":
            return self._flow_map(place)
        if first in "\"'":
            return self._quoted(place)
        if first == "*":
            name = self._anchor_name(place)
            if name not in self.anchors:
                raise YamlError(f"'*{name}' names no anchor that came before.", row + 1)
            return self.anchors[name], (row, column + 1 + len(name))
        if first == "&":
            name = self._anchor_name(place)
            self.anchors[name], place = self._flow_node(self._skip((row, column + 1 + len(name))))
            return self.anchors[name], place
        return self._flow_plain(place)

    def _flow_list(self, place: _Place) -> tuple[list[Any], _Place]:
        items: list[Any] = []
        place = self._skip((place[0], place[1] + 1))
        while self._at(place) != "]":
            item, place = self._flow_node(place)
            place = self._skip(place)
            if self._at(place) == ":":  # [a: 1] is a list of one map
                start = place[0]
                value, place = self._flow_value(place)
                pair: dict[Any, Any] = {}
                self._put(pair, item, value, start)
                item = pair
            items.append(item)
            place = self._next_entry(place, "]")
        return items, (place[0], place[1] + 1)

    def _flow_map(self, place: _Place) -> tuple[dict[Any, Any], _Place]:
        found: dict[Any, Any] = {}
        place = self._skip((place[0], place[1] + 1))
        while self._at(place) != "}":
            start = place[0]
            key, place = self._flow_node(place)
            place = self._skip(place)
            value = None
            if self._at(place) == ":":
                value, place = self._flow_value(place)
            self._put(found, key, value, start)
            place = self._next_entry(place, "}")
        return found, (place[0], place[1] + 1)

    def _flow_value(self, colon: _Place) -> tuple[Any, _Place]:
        place = self._skip((colon[0], colon[1] + 1))
        if self._at(place) in ",]}":
            return None, place
        value, place = self._flow_node(place)
        return value, self._skip(place)

    def _next_entry(self, place: _Place, closing: str) -> _Place:
        if self._at(place) == ",":
            return self._skip((place[0], place[1] + 1))
        if self._at(place) != closing:
            raise YamlError(f"expected ',' or '{closing}', found {self._at(place)!r}.", place[0] + 1)
        return place

    def _skip(self, place: _Place) -> _Place:
        """The next place, on this line or below, that is neither space nor comment."""
        row, column = place
        while row < len(self.lines):
            rest = self.lines[row][column:]
            if not _is_blank(rest if column == 0 or rest[:1] != "#" else "x"):
                return row, column + len(rest) - len(rest.lstrip(" \t"))
            row, column = row + 1, 0
        raise YamlError("a bracket opened here or before is never closed.", place[0] + 1)

    def _at(self, place: _Place) -> str:
        return self.lines[place[0]][place[1]]

    def _flow_plain(self, place: _Place) -> tuple[Any, _Place]:
        row, column = place
        text = self.lines[row][column:]
        if text[0] in "]},:" and not re.match(r":[^ \t,\[\]{}]", text):
            raise YamlError(f"did not expect {text[0]!r} here.", row + 1)
        if text[0] in "?!|>%@`" or re.match(r"-([ \t]|$)", text):
            raise YamlError(f"a value cannot start with {text[0]!r} here; put it in quotes.", row + 1)
        pieces: list[str] = []
        while True:
            rest = self.lines[row][column:]
            end = re.search(r"[,\[\]{}]|:(?=[ \t,\[\]{}]|$)|(?:(?<=[ \t])|^)#|$", rest)
            assert end is not None  # the pattern matches the end of the line as well
            pieces.append(rest[: end.start()].strip(" \t"))
            if end.group() != "" or end.start() < len(rest):
                break
            following, start = self._skip((row, len(self.lines[row])))
            nothing_between = all(not line.strip(" \t") for line in self.lines[row + 1 : following])
            if not nothing_between or self.lines[following][start] in ",[]{}:#":
                break
            pieces.append(_fold(following - row - 1))
            row, column = following, start
        value = _plain_value(pieces[0]) if len(pieces) == 1 else "".join(pieces)
        return value, (row, column + end.start())

    def _quoted(self, place: _Place) -> tuple[str, _Place]:
        """The text between quotes, with its line breaks folded, and the place behind the closing quote."""
        row, column = place
        quote = self.lines[row][column]
        column += 1
        found: list[str] = []
        fixed = 0  # what comes before may not lose its trailing spaces: it was written as an escape
        while True:
            line = self.lines[row]
            if column >= len(line):
                while len(found) > fixed and found[-1] in " \t":
                    found.pop()
                row, column, breaks = self._next_quoted_line(place, row)
                found.append(_fold(breaks))
                fixed = len(found)
            elif line[column] == quote == "'" and line[column + 1 : column + 2] == "'":
                found.append("'")
                column += 2
            elif line[column] == quote:
                return "".join(found), (row, column + 1)
            elif line[column] == "\\" and quote == '"':
                if column + 1 == len(line):  # an escaped line break joins without a space
                    row, column, breaks = self._next_quoted_line(place, row)
                    found.append("\n" * breaks)
                else:
                    text, column = self._escape(row, column)
                    found.append(text)
                fixed = len(found)
            else:
                found.append(line[column])
                column += 1

    def _next_quoted_line(self, start: _Place, row: int) -> tuple[int, int, int]:
        following = row + 1
        while following < len(self.lines) and not self.lines[following].strip(" \t"):
            following += 1
        if following == len(self.lines):
            raise YamlError("the quote opened here is never closed.", start[0] + 1)
        line = self.lines[following]
        return following, len(line) - len(line.lstrip(" \t")), following - row - 1

    def _escape(self, row: int, column: int) -> tuple[str, int]:
        line = self.lines[row]
        mark = line[column + 1]
        if mark in _ESCAPES:
            return _ESCAPES[mark], column + 2
        width = {"x": 2, "u": 4, "U": 8}.get(mark, 0)
        digits = line[column + 2 : column + 2 + width]
        is_number = width > 0 and len(digits) == width and re.match(r"[0-9a-fA-F]+$", digits)
        if not is_number or int(digits, 16) > 0x10FFFF:
            raise YamlError(f"the escape '\\{mark}{digits}' is not understood.", row + 1)
        return chr(int(digits, 16)), column + 2 + width

    def _error(self, problem: str) -> YamlError:
        return YamlError(problem, self.row + 1)


_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def _is_blank(rest: str) -> bool:
    """Whether nothing but space and a comment is left. A comment needs a space, or nothing, before it."""
    stripped = rest.strip(" \t")
    return not stripped or (stripped[0] == "#" and (rest[0] in " \t#"))


def _without_comment(text: str) -> str:
    comment = re.search(r"[ \t]#", text)
    return text[: comment.start()] if comment else text


def _closed_on_its_line(line: str, column: int) -> bool:
    pattern = r"'(?:[^']|'')*'" if line[column] == "'" else r'"(?:[^"\\]|\\.)*"'
    return re.compile(pattern).match(line, column) is not None


def _fold(empty_lines: int) -> str:
    return "\n" * empty_lines or " "


def _fold_block(lines: list[str]) -> str:
    """Fold the lines of a > block: lines that start with space keep their breaks, on both sides."""
    text = ""
    previous: str | None = None
    breaks = 0
    for line in lines:
        if not line:
            breaks += 1
            continue
        if previous is None:
            text += "\n" * breaks
        elif previous[0] in " \t" or line[0] in " \t":
            text += "\n" * (breaks + 1)
        else:
            text += _fold(breaks)
        text += line
        previous, breaks = line, 0
    return text


# Unquoted scalars mean what YAML 1.1 says: yes and on are true, 010 is eight, 3.10 a number and 3.6.2 text.

_BOOLEANS = {
    word: value
    for value, words in ((True, ("yes", "true", "on")), (False, ("no", "false", "off")))
    for lower in words
    for word in (lower, lower.capitalize(), lower.upper())
}
_NULLS = ("", "~", "null", "Null", "NULL")
_INTEGER = re.compile(
    r"[-+]?(?:0b(?P<two>[01_]+)|0x(?P<sixteen>[0-9a-fA-F_]+)|0(?P<eight>[0-7_]+)"
    r"|(?P<sixty>[1-9][0-9_]*(?::[0-5]?[0-9])+)|(?P<ten>0|[1-9][0-9_]*))$"
)
_FLOAT = re.compile(
    r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|(?P<sixty>[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)"
    r"|(?P<infinity>[-+]?\.(?:inf|Inf|INF))|(?P<nan>\.(?:nan|NaN|NAN)))$"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")


def _plain_value(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.match(text):
        return _integer(text)
    if _FLOAT.match(text):
        return _float(text)
    return text


def _integer(text: str) -> Any:
    sign = -1 if text[0] == "-" else 1
    match = _INTEGER.match(text)
    assert match is not None
    ((base, digits),) = ((name, found) for name, found in match.groupdict().items() if found is not None)
    digits = digits.replace("_", "")
    if base == "sixty":
        return sign * int(_sexagesimal(digits))
    if not digits:
        return 0 if base == "eight" else text  # 0_ is nought; 0x_ is nothing
    return sign * int(digits, {"two": 2, "eight": 8, "ten": 10, "sixteen": 16}[base])


def _float(text: str) -> float:
    match = _FLOAT.match(text)
    assert match is not None
    if match.group("nan"):
        return math.nan
    sign = -1.0 if text[0] == "-" else 1.0
    if match.group("infinity"):
        return sign * math.inf
    digits = text.replace("_", "").lstrip("+-")
    return sign * float(_sexagesimal(digits) if match.group("sixty") else digits)


def _sexagesimal(text: str) -> float:
    total = 0.0 if "." in text else 0
    for part in text.split(":"):
        total = total * 60 + (float(part) if "." in part else int(part))
    return total


# Writing


def _block(value: Any, indent: int) -> list[str]:
    """The lines of `value`, each indented by `indent` at least."""
    margin = " " * indent
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            lines += _entry(margin + _scalar(key) + ":", item, indent)
        return lines
    if isinstance(value, (list, tuple)) and value:
        lines = []
        for item in value:
            first, *more = _block(item, indent + 2)
            lines += [margin + "- " + first[indent + 2 :], *more]
        return lines
    if isinstance(value, str) and _reads_well_as_block(value):
        return [margin + line for line in _literal(value, indent)]
    return [margin + _scalar(value)]


def _entry(head: str, item: Any, indent: int) -> list[str]:
    if isinstance(item, dict) and item:
        return [head, *_block(item, indent + 2)]
    if isinstance(item, (list, tuple)) and item:
        return [head, *_block(item, indent)]
    first, *more = _block(item, indent)
    return [head + " " + first[indent:], *more]


def _reads_well_as_block(text: str) -> bool:
    lines = text.split("\n")
    return (
        len(lines) > 1
        and lines[0] != ""
        and lines[0][0] not in " \t"
        and all(not line or (line.strip() != "" and line.replace("\t", "").isprintable()) for line in lines)
    )


def _literal(text: str, indent: int) -> list[str]:
    body = text.rstrip("\n")
    trailing = len(text) - len(body)
    head = "|-" if trailing == 0 else "|" if trailing == 1 else "|+"
    return [head, *("  " + line if line else "" for line in body.split("\n")), *[""] * (trailing - 1)]


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, (list, tuple)) and not value:
        return "[]"
    if isinstance(value, dict) and not value:
        return "{}"
    raise TypeError(f"A {type(value).__name__} cannot be written as YAML: {value!r}.")


def _float_text(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    mantissa, mark, exponent = float.__repr__(value).partition("e")
    return mantissa + (".0" if "." not in mantissa else "") + mark + exponent  # YAML 1.1 wants the point


def _text(text: str) -> str:
    if not text.isprintable():
        return '"' + "".join(map(_escaped, text)) + '"'
    if _is_safe_unquoted(text):
        return text
    return "'" + text.replace("'", "''") + "'"


def _is_safe_unquoted(text: str) -> bool:
    return (
        re.match(r"(?:[^\W_]|[_./$+(]|-{1,2}[A-Za-z])", text) is not None
        and not re.search(r": | #|[: ]$", text)
        and not text.startswith("...")
        and isinstance(_plain_value(text), str)
        and not _DATE.match(text)
    )


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
