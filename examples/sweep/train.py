"""Trains a small network on made-up points by hand, and logs the loss after every epoch."""

import argparse
import math
import random

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--learning-rate", type=float, default=0.1)
parser.add_argument("--hidden", type=int, default=4)
parser.add_argument("--epochs", type=int, default=20)
given = parser.parse_args()

chance = random.Random(0)
points = [(x / 20, math.sin(3 * x / 20)) for x in range(-20, 21)]
inner = [(chance.uniform(-1, 1), chance.uniform(-1, 1)) for _ in range(given.hidden)]
outer = [chance.uniform(-1, 1) for _ in range(given.hidden)]
run = Run.get_context()

for _ in range(given.epochs):
    chance.shuffle(points)
    total = 0.0
    for x, y in points:
        active = [math.tanh(a * x + b) for a, b in inner]
        error = sum(w * h for w, h in zip(outer, active, strict=True)) - y
        total += error * error
        for at, h in enumerate(active):
            a, b = inner[at]
            slope = given.learning_rate * error * outer[at] * (1 - h * h)
            outer[at] -= given.learning_rate * error * h
            inner[at] = (a - slope * x, b - slope)
    run.log("loss", total / len(points))
