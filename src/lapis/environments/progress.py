"""What uv tells while it works, as lines for a log."""

from __future__ import annotations

import re

from lapis.machine.commands import Tell

_SIZE = re.compile(r"Downloading (?P<name>\S+) \((?P<amount>[\d.]+) ?(?P<unit>[KMG]?i?B)\)$")
_STAGE = re.compile(r"(?P<what>Prepared|Installed) (?P<count>\d+) packages? in (?P<time>.+)$")
_PASSED_ON = ("Downloading ", "Downloaded ", "Built ", "Updating ", "Updated ", "warning: ")
_STAGES = {"Prepared": "Downloaded and unpacked", "Installed": "Linked"}


def of_uv(tell: Tell) -> Tell:
    """Takes uv's lines; tells those that a user waits for."""

    def take(line: str) -> None:
        said = translated(line.strip())
        if said:
            tell(said)

    return take


def translated(line: str) -> str:
    """Our words for a line of uv's; empty if nobody needs it."""
    sized = _SIZE.match(line)
    if sized:
        return f"Downloading {sized['name']} ({sized['amount']} {sized['unit']})"
    stage = _STAGE.match(line)
    if stage:
        count = f"{stage['count']} package{'' if stage['count'] == '1' else 's'}"
        return f"{_STAGES[stage['what']]} {count} in {_seconds(stage['time']):.1f} s"
    if line.startswith("Building "):
        return f"{line} from its source"
    return line if line.startswith(_PASSED_ON) else ""


def download(line: str) -> tuple[str, int]:
    """The package and bytes of a line that says that a download begins; no name otherwise."""
    sized = _SIZE.match(line)
    if not sized:
        return "", 0
    unit = {"B": 1, "K": 1024, "M": 1024**2, "G": 1024**3}[sized["unit"][0]]
    return sized["name"], int(float(sized["amount"]) * unit)


def _seconds(text: str) -> float:
    """uv writes 57ms, 1.70s and 2m 05s."""
    lengths = {"m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(float(number) * lengths[unit] for number, unit in re.findall(r"([\d.]+)(ms|m|s)", text))
