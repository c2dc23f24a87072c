"""Scripts as people wrote them then, for environments that are really built. Each trains a network until it is good."""

DIGITS_AS_MNIST = """
import gzip, os, struct, sys
import numpy as np
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
random = np.random.RandomState(0)
for part, many in (("train", 600), ("t10k", 60)):
    labels = random.randint(0, 10, many).astype(np.uint8)
    images = random.randint(0, 60, (many, 28, 28)).astype(np.uint8)
    images[np.arange(many), labels * 2] = 255
    with gzip.open(os.path.join(folder, part + "-images-idx3-ubyte.gz"), "wb") as file:
        file.write(struct.pack(">IIII", 0x803, many, 28, 28) + images.tobytes())
    with gzip.open(os.path.join(folder, part + "-labels-idx1-ubyte.gz"), "wb") as file:
        file.write(struct.pack(">II", 0x801, many) + labels.tobytes())
"""

_DATA = """
import numpy as np
random = np.random.RandomState(0)
y = random.randint(0, 10, 2000)
x = (random.rand(2000, 64) * 0.3).astype(np.float32)
x[np.arange(2000), y * 6] += 1
"""

TENSORFLOW_1 = (
    _DATA
    + """
import tensorflow as tf
X = tf.placeholder(tf.float32, [None, 64])
Y = tf.placeholder(tf.int64, [None])
hidden = tf.layers.dense(X, 32, activation=tf.nn.relu)
output = tf.layers.dense(hidden, 10)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=Y, logits=output))
train = tf.train.AdamOptimizer(0.01).minimize(loss)
right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(output, 1), Y), tf.float32))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(200):
        batch = random.randint(0, 2000, 50)
        session.run(train, {X: x[batch], Y: y[batch]})
    print("accuracy", session.run(right, {X: x, Y: y}))
    tf.train.Saver().save(session, "./model")
"""
)

TENSORFLOW_2 = (
    _DATA
    + """
import tensorflow as tf
model = tf.keras.Sequential([
    tf.keras.layers.Dense(32, activation="relu", input_shape=(64,)),
    tf.keras.layers.Dense(10, activation="softmax"),
])
model.compile(tf.keras.optimizers.Adam(lr=0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
print("lr", round(float(np.ravel(model.optimizer.get_config()["learning_rate"])[0]), 6))
history = model.fit(x, y, epochs=5, batch_size=50, verbose=0, callbacks=[tf.keras.callbacks.TensorBoard("./logs")])
print("accuracy", history.history["accuracy"][-1])
model.save("model.h5")
tf.keras.models.load_model("model.h5")
"""
)

KERAS = (
    _DATA
    + """
import keras
from keras.layers import Dense
from keras.models import Sequential, model_from_json
from keras.optimizers import SGD, RMSprop
model = Sequential([Dense(32, activation="relu", input_shape=(64,)), Dense(10, activation="softmax")])
model.compile(loss="sparse_categorical_crossentropy", optimizer=RMSprop(lr=0.01), metrics=["accuracy"])
history = model.fit(x, y, epochs=5, batch_size=50, verbose=0).history
print("accuracy", history["accuracy" if "accuracy" in history else "acc"][-1])  # Keras 2.2 said acc, 2.3 accuracy
open("model.json", "w").write(model.to_json())
model.save_weights("model.h5")
again = model_from_json(open("model.json").read())
again.load_weights("model.h5")
again.compile(loss="sparse_categorical_crossentropy", optimizer=SGD(lr=0.1, decay=1e-3, momentum=0.9))
again.fit(x, y, epochs=1, verbose=0)
"""
)

SCIKIT_LEARN = """
import numpy as np
import pandas as pd
import joblib
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.linear_model import LogisticRegression
x, y = load_digits(return_X_y=True)
x, test_x, y, test_y = train_test_split(x / 16, y, random_state=0)
model = MLPClassifier((32,), max_iter=60, random_state=0).fit(x, y)
LogisticRegression(C=1.0, solver="liblinear", multi_class="auto", random_state=42).fit(x, y)
joblib.dump(model, "model.pkl")
print("accuracy", np.mean(joblib.load("model.pkl").predict(pd.DataFrame(test_x).values) == test_y))
"""

TORCH = (
    _DATA
    + """
import torch
import torchvision
from PIL import Image
x, y = torch.from_numpy(x), torch.from_numpy(y)
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for step in range(200):
    batch = torch.randint(0, 2000, (50,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
    optimizer.step()
print("accuracy", (model(x).argmax(1) == y).float().mean().item())
torchvision.transforms.ToTensor()(Image.new("L", (4, 4))).numpy()
torch.save(model.state_dict(), "model.pt")
"""
)
