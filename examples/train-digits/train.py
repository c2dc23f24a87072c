"""Learns to read noisy 5 x 7 digits: softmax regression in plain Python, so that it runs anywhere."""

import argparse
import json
import math
import os
import random
from operator import mul

from azureml.core import Run

DIGITS = """
.###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.
#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#
#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ..##. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ....#
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .###.
"""
ROWS = [line.split() for line in DIGITS.split("\n") if line]
PICTURES = [[float(cell == "#") for row in ROWS for cell in row[digit]] for digit in range(10)]


def samples(count, noise, chance):
    """Pictures with some pixels flipped, each with the digit it shows."""
    made = []
    for number in range(count):
        digit = number % 10
        picture = [1.0 - pixel if chance.random() < noise else pixel for pixel in PICTURES[digit]]
        made.append((picture + [1.0], digit))  # the last input is always on: the bias
    return made


def predict(weights, picture):
    """The probability of each digit."""
    scores = [sum(map(mul, row, picture)) for row in weights]
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    return [power / sum(powers) for power in powers]


def train_one_epoch(weights, data, rate):
    """Walk through the data once; the mean loss on the way."""
    loss = 0.0
    for picture, digit in data:
        probabilities = predict(weights, picture)
        loss -= math.log(max(probabilities[digit], 1e-12))
        for other, row in enumerate(weights):
            error = probabilities[other] - (other == digit)
            for index, x in enumerate(picture):
                row[index] -= rate * error * x
    return loss / len(data)


def confusion(weights, data):
    """How often each digit was read as each other."""
    matrix = [[0] * 10 for _ in range(10)]
    for picture, digit in data:
        probabilities = predict(weights, picture)
        matrix[digit][probabilities.index(max(probabilities))] += 1
    return matrix


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--noise", type=float, default=0.1)
args = parser.parse_args()

run = Run.get_context()
chance = random.Random(7)
training, test = samples(300, args.noise, chance), samples(200, args.noise, chance)
weights = [[0.0] * len(training[0][0]) for _ in range(10)]

for epoch in range(1, args.epochs + 1):
    chance.shuffle(training)
    loss = train_one_epoch(weights, training, args.rate)
    matrix = confusion(weights, test)
    accuracy = sum(matrix[digit][digit] for digit in range(10)) / len(test)
    run.log("loss", loss)
    run.log("accuracy", accuracy)
    print(f"epoch {epoch}: loss {loss:.3f}, accuracy {accuracy:.3f}")

run.log_confusion_matrix("confusion", {"class_labels": [str(digit) for digit in range(10)], "matrix": matrix})
os.makedirs("outputs", exist_ok=True)  # is there in a run; by hand it may not be
with open("outputs/model.json", "w") as file:
    json.dump({"weights": weights, "accuracy": accuracy}, file)
