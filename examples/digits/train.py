"""Learns to read handwritten digits with a small convolutional network of TensorFlow, and saves it for serving.

Nothing here is Lapis' own: it is a script as people wrote them for Azure ML. Started by hand it works too, and prints
what it would have logged.
"""

import argparse
import os

import numpy as np
import tensorflow as tf

from azureml.core import Run


class Report(tf.keras.callbacks.Callback):
    """Logs each epoch as it ends, and shows how far it is."""

    def __init__(self, run, epochs):
        super().__init__()
        self.run = run
        self.epochs = epochs

    def on_epoch_end(self, epoch, logs=None):
        done = epoch + 1
        self.run.log("loss", logs["loss"])
        self.run.log("accuracy", logs["val_accuracy"])
        bar = "#" * done + "." * (self.epochs - done)
        print(
            f"epoch {done}/{self.epochs} [{bar}] loss {logs['loss']:.3f}, "
            f"{logs['val_accuracy']:.1%} of the test digits are read right",
            flush=True,
        )


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--data", default="data", help="the folder or file with digits.npz")
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--rate", type=float, default=0.004)
    given = options.parse_args()

    run = Run.get_context()
    path = os.path.join(given.data, "digits.npz") if os.path.isdir(given.data) else given.data
    with np.load(path) as data:
        x_train, y_train = data["x_train"][..., None] / np.float32(255), data["y_train"]
        x_test, y_test = data["x_test"][..., None] / np.float32(255), data["y_test"]
    print(f"TensorFlow {tf.__version__}: {len(x_train)} digits to learn from, {len(x_test)} to check with", flush=True)

    tf.keras.utils.set_random_seed(7)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((28, 28, 1), name="pixels"),
            layers.Conv2D(8, 5, strides=2, padding="same", activation="relu"),
            layers.Conv2D(16, 5, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax", name="digits"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(given.rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(
        x_train, y_train, batch_size=128, epochs=given.epochs, validation_data=(x_test, y_test), verbose=0,
        callbacks=[Report(run, given.epochs)],
    )  # fmt: skip

    confusion = tf.math.confusion_matrix(y_test, model(x_test).numpy().argmax(axis=1)).numpy()
    labels = [str(digit) for digit in range(10)]
    run.log_confusion_matrix(
        "confusion", {"schema_type": "confusion_matrix", "schema_version": "1.0.0",
                      "data": {"class_labels": labels, "matrix": confusion.tolist()}},
    )  # fmt: skip
    model.export("outputs/model", verbose=False)  # a SavedModel: what goes in and what comes out is part of it
    print("saved outputs/model")


if __name__ == "__main__":
    main()
