"""`import azureml.core` in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from measure import Asked, Clock, Figure, Options, Reading, alone

ROUNDS = 10
PEER_ROUNDS = 5


def measure(options: Options) -> list[Figure]:
    commands = {
        "Lapis": [sys.executable, "-c", "import azureml.core"],
        "bare: python -c pass": [sys.executable, "-c", "pass"],
    }
    if options.peers:
        commands["MLflow: import mlflow"] = [options.peers, "-c", "import mlflow"]
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        subprocess.run(command, check=True)  # byte code and page cache are warm from here on
    for number in range(ROUNDS):
        for name, command in commands.items():
            if command[0] == options.peers and number >= PEER_ROUNDS:
                continue
            with Clock() as clock:
                subprocess.run(command, check=True)
            wall[name].append(clock.wall)
            cpu[name].append(clock.cpu)
    readings = [Reading(name, wall[name], cpu[name], bare=name.startswith("bare")) for name in commands]
    return [Figure("import azureml.core, fresh process", "s", readings, Asked(most=0.15))]


if __name__ == "__main__":
    alone(measure)
