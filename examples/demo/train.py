"""Learns to read made-up hand-written digits with a small neural network: plain Python, no packages.

Nothing here is Lapis' own: it is a script as people wrote them for Azure ML. Started by hand it works too, and prints
what it would have logged.
"""

import argparse
import json
import math
import os
import random
import time

from azureml.core import Run

GLYPHS = """
.###.  ..#..  .###.  .###.  ...#.  #####  .###.  #####  .###.  .###.
#...#  .##..  #...#  #...#  ..##.  #....  #....  ....#  #...#  #...#
#..##  ..#..  ....#  ....#  .#.#.  ####.  ####.  ...#.  #...#  #...#
#.#.#  ..#..  ..##.  ..##.  #..#.  ....#  #...#  ..#..  .###.  .####
##..#  ..#..  .#...  ....#  #####  ....#  #...#  .#...  #...#  ....#
#...#  ..#..  #....  #...#  ...#.  #...#  #...#  .#...  #...#  ....#
.###.  .###.  #####  .###.  ...#.  .###.  .###.  .#...  .###.  .###.
"""
WIDTH, HEIGHT = 8, 9
PIXELS, DIGITS = WIDTH * HEIGHT, 10


def draw(digit, chance):
    """One digit somewhere on a small canvas, its strokes uneven, some lost, and with specks around it."""
    rows = [line.split()[digit] for line in GLYPHS.split("\n") if line]
    left, top = chance.randint(0, WIDTH - 5), chance.randint(0, HEIGHT - 7)
    canvas = [max(0.0, chance.gauss(0.0, 0.15)) for _ in range(PIXELS)]
    for y, row in enumerate(rows):
        for x, stroke in enumerate(row):
            if stroke == "#" and chance.random() > 0.05:
                canvas[(top + y) * WIDTH + left + x] = chance.uniform(0.6, 1.0)
    return canvas


def make_data(count, chance):
    return [(draw(number % DIGITS, chance), number % DIGITS) for number in range(count)]


class Network:
    """Pixels to hidden units to ten digits, trained one picture at a time."""

    def __init__(self, hidden, chance):
        self.inner = [[chance.gauss(0.0, 0.2) for _ in range(PIXELS + 1)] for _ in range(hidden)]
        self.outer = [[chance.gauss(0.0, 0.2) for _ in range(hidden + 1)] for _ in range(DIGITS)]

    def read(self, pixels):
        """What the hidden units say, and how likely each digit is."""
        seen = [max(0.0, row[-1] + sum(map(float.__mul__, row, pixels))) for row in self.inner]
        scores = [row[-1] + sum(map(float.__mul__, row, seen)) for row in self.outer]
        highest = max(scores)
        powers = [math.exp(score - highest) for score in scores]
        total = sum(powers)
        return seen, [power / total for power in powers]

    def learn(self, pixels, digit, rate):
        """One step downhill; the loss before it."""
        seen, likely = self.read(pixels)
        faults = [likely[each] - (each == digit) for each in range(DIGITS)]
        back = [
            sum(map(float.__mul__, faults, (row[unit] for row in self.outer))) if seen[unit] > 0.0 else 0.0
            for unit in range(len(self.inner))
        ]
        for rows, inputs, errors in ((self.outer, seen, faults), (self.inner, pixels, back)):
            for row, error in enumerate(errors):
                if error:
                    weights, step = rows[row], rate * error
                    for place, each in enumerate(inputs):
                        weights[place] -= step * each
                    weights[-1] -= step
        return -math.log(max(likely[digit], 1e-12))


def accuracy(network, data):
    right = sum(max(range(DIGITS), key=network.read(pixels)[1].__getitem__) == digit for pixels, digit in data)
    return right / len(data)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=10)
    options.add_argument("--hidden", type=int, default=32)
    options.add_argument("--rate", type=float, default=0.05)
    given = options.parse_args()

    run = Run.get_context()
    chance = random.Random(7)
    train, test = make_data(1200, chance), make_data(300, chance)
    network = Network(given.hidden, chance)
    print(f"{len(train)} pictures to learn from, {len(test)} to check with, {given.hidden} hidden units")
    for epoch in range(1, given.epochs + 1):
        began = time.perf_counter()
        chance.shuffle(train)
        loss = sum(network.learn(pixels, digit, given.rate) for pixels, digit in train) / len(train)
        right = accuracy(network, test)
        run.log("loss", loss)
        run.log("accuracy", right)
        seconds = time.perf_counter() - began
        print(f"epoch {epoch:2d}/{given.epochs}  loss {loss:.3f}  accuracy {right:.3f}  ({seconds:.2f} s)")

    os.makedirs("outputs", exist_ok=True)  # what lies in it at the end is kept with the run
    with open("outputs/model.json", "w") as file:
        json.dump({"inner": network.inner, "outer": network.outer, "accuracy": right}, file)
    print("saved outputs/model.json")


if __name__ == "__main__":
    main()
