"""A stand-in for the command micromamba, which no package index has: the same options, and a real solver and linker.

It understands what Lapis asks for: `create [--dry-run --json] [--no-deps] --prefix P --override-channels --channel C
SPEC...`. The work is done by rattler, on which pixi and rattler-build stand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys

import rattler


async def main() -> int:
    parser = argparse.ArgumentParser(prog="micromamba")
    parser.add_argument("command", choices=["create"])
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--channel", action="append", default=[])
    for flag in ("--dry-run", "--json", "--yes", "--quiet", "--no-deps", "--override-channels"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("specs", nargs="+")
    given = parser.parse_args()
    cache = os.path.join(os.environ["CONDA_TEST_CACHE"], "repodata")
    gateway = rattler.Gateway(cache_dir=cache)
    try:
        records = await rattler.solve(
            given.channel, [_spec(each) for each in given.specs], gateway, ["linux-64", "noarch"]
        )
    except rattler.exceptions.SolverError as error:
        print(json.dumps({"success": False, "solver_problems": [str(error)]}) if given.json else str(error))
        return 1
    if given.dry_run:
        links = [
            {"name": each.name.normalized, "version": str(each.version), "build": str(each.build), "url": str(each.url)}
            for each in records
        ]
        print(json.dumps({"success": True, "dry_run": True, "actions": {"LINK": links, "PREFIX": given.prefix}}))
        return 0
    packages = os.path.join(os.environ["CONDA_TEST_CACHE"], "packages")
    await rattler.install(records, given.prefix, cache_dir=packages, show_progress=False)
    print(f"Linked {len(records)} packages", file=sys.stderr)
    return 0


def _spec(text: str) -> str:
    """name=version=build, where one '=' before the version means a prefix, is rattler's `name version.* build`."""
    name, _, rest = text.partition("=")
    number, _, build = rest.partition("=")
    if build:
        return f"{name} =={number} {build}"
    return text


if __name__ == "__main__":
    code = asyncio.run(main())
    sys.stdout.flush()
    os._exit(code)  # rattler's threads do not survive an orderly end of Python
