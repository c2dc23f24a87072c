"""`run.log` inside a submitted script: CPU of one call, as the script itself sees it."""

from __future__ import annotations

import json

import peers
from home import Home
from measure import Asked, Figure, Options, Reading, alone

from azureml.core import ScriptRunConfig

ROUNDS = 5
CALLS = 10_000
PEER_CALLS = 100
SCRIPT = f"""
import json, time
from azureml.core import Run

run = Run.get_context()
run.log("warm", 0.0)
samples = {{"lapis": [], "line": []}}
with open("line.jsonl", "w") as file:
    for _ in range({ROUNDS}):
        began = time.process_time()
        for step in range({CALLS}):
            run.log("loss", step * 0.1)
        samples["lapis"].append((time.process_time() - began) / {CALLS})
        began = time.process_time()
        for step in range({CALLS}):
            file.write(json.dumps({{"k": "loss", "v": step * 0.1, "s": step, "t": time.time()}}) + "\\n")
            file.flush()
        samples["line"].append((time.process_time() - began) / {CALLS})
with open("outputs/samples.json", "w") as file:
    json.dump(samples, file)
"""


def measure(options: Options) -> list[Figure]:
    with Home() as home:
        run = home.experiment().submit(ScriptRunConfig(home.source(SCRIPT), "train.py"))
        run.wait_for_completion()
        run.download_file("outputs/samples.json", "samples.json")
        samples = json.loads((home.work / "samples.json").read_text())
        stored = len(run.get_metrics("loss")["loss"])
        assert stored == ROUNDS * CALLS, f"{stored} of {ROUNDS * CALLS} points were stored"
    readings = [
        Reading("Lapis", samples["lapis"]),
        Reading("bare: a JSON line, flushed", samples["line"], bare=True),
    ]
    if options.peers:
        found = peers.ask(options.peers, "log_metric", PEER_CALLS, 3)
        readings.append(Reading("MLflow SQLite: log_metric", found["cpu"], note=f"{PEER_CALLS} calls a round"))
    return [Figure("run.log in a job, CPU of a call", "s", readings, Asked(most=30e-6))]


if __name__ == "__main__":
    alone(measure)
