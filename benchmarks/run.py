"""`make bench`: every figure beside the bare operation and a peer, in one run; `--write` puts it into the docs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import peers
from measure import Figure, add_options, scratch, table

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
SECTIONS = (
    "import_time",
    "by_hand",
    "log_call",
    "create_runs",
    "ingest",
    "metrics",
    "footprint",
    "submit",
    "many_runs",
    "silent_run",
    "printing",
    "search",
    "growth",
    "load",
    "snapshot",
    "data",
    "artifacts",
    "environments",
    "tables",
    "server_start",
    "distributed",
    "ray_submit",
    "serving",
    "service_life",
    "models",
    "sweep",
    "pipelines",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all of them if none")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    add_options(parser)
    given = parser.parse_args()
    unknown = sorted(set(given.sections) - set(SECTIONS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(SECTIONS)}.")
    if given.write and given.sections:
        parser.error("--write keeps the whole table: leave the sections out.")
    flags = ["--peers-slow"] if given.peers_slow else []
    if given.no_peers or peers.interpreter() is None:
        flags.append("--no-peers")
    began, load = time.monotonic(), os.getloadavg()[0]
    figures, failed = [], []
    with scratch():
        for section in given.sections or SECTIONS:
            found = _measure(section, flags)
            figures.extend(found)
            if not found:
                failed.append(section)
    text = "\n\n".join([_machine(load, time.monotonic() - began, with_peers="--no-peers" not in flags), table(figures)])
    print(text)
    if failed:
        print(f"Not measured, see above: {', '.join(failed)}.", file=sys.stderr)
        return 1
    if given.write:
        _write(text)
    return 0


def _measure(section: str, flags: list[str]) -> list[Figure]:
    """In a process of its own, so that no section inherits threads, caches or children of another."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{section}.py"), "--json", *flags], stdout=subprocess.PIPE, text=True
    )
    print(f"{section}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if done.returncode:
        return []
    return [Figure.from_json(body) for body in json.loads(done.stdout.splitlines()[-1])]


def _machine(load: float, seconds: float, with_peers: bool) -> str:
    versions = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}"]
    versions += peers.PACKAGES if with_peers else ["without the others"]
    loads = f"{load:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end"
    return (
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average {loads}, {platform.system()}, "
        f"{', '.join(versions)}; {seconds:.0f} s in all."
    )


def _write(text: str) -> None:
    page = PAGE.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{PAGE} has no place for the table: the lines {BEGIN} and {END} are needed.")
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
