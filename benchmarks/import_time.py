"""What a script imports first, in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

from measure import Asked, Clock, Figure, Options, Reading, alone

ROUNDS = 15
PEER_ROUNDS = 5
STATEMENTS = {
    "import azureml.core": Asked(most=0.15),
    "from azureml.core import Run": Asked(times_bare=2.5),
    "from azureml.core import Model": Asked(times_bare=3),
    "from azureml.core import Dataset": Asked(times_bare=3),
}
BARE = "bare: python -c pass"
PEER = "MLflow: import mlflow"


def measure(options: Options) -> list[Figure]:
    commands = {statement: [sys.executable, "-c", statement] for statement in STATEMENTS}
    commands[BARE] = [sys.executable, "-c", "pass"]
    if options.peers:
        commands[PEER] = [options.peers, "-c", "import mlflow"]
    wall: dict[str, list[float]] = {name: [] for name in commands}
    cpu: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        subprocess.run(command, check=True)  # byte code and page cache are warm from here on
    for number in range(ROUNDS):
        for name, command in commands.items():
            if name == PEER and number >= PEER_ROUNDS:
                continue
            with Clock() as clock:
                subprocess.run(command, check=True)
            wall[name].append(clock.wall)
            cpu[name].append(clock.cpu)

    def reading(name: str, system: str) -> Reading:
        return Reading(system, wall[name], cpu[name], bare=name == BARE)

    figures = []
    for statement, asked in STATEMENTS.items():
        readings = [reading(statement, "Lapis"), reading(BARE, BARE)]
        if PEER in commands and statement == "import azureml.core":
            readings.append(reading(PEER, PEER))
        figures.append(Figure(f"{statement}, fresh process", "s", readings, asked))
    return figures


if __name__ == "__main__":
    alone(measure)
