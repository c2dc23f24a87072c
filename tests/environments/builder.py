"""A process that builds one environment and prints what it is told: `python builder.py <lock file> <root>`."""

from __future__ import annotations

import json
import sys

from lapis.environments.build import build
from lapis.environments.interpreters import interpreter_for
from lapis.environments.values import Lock

with open(sys.argv[1]) as file:
    lock = Lock.from_json(json.load(file))
print(build(lock, interpreter_for(lock.python), sys.argv[2], lambda line: print(line, flush=True)), flush=True)
