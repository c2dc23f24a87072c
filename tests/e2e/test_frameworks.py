"""Real frameworks train on several nodes: TensorFlow's three ways, PyTorch's. Heavy: their packages are installed."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from azureml.core import Dataset, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.runconfig import MpiConfiguration, PyTorchConfiguration, TensorflowConfiguration
from azureml.train.hyperdrive import (
    BanditPolicy,
    GridParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    choice,
)
from lapis.testing import Home
from tests.kept import kept_home
from tests.needs import need

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("frameworks")]  # one after the other: each needs gigabytes

TENSORFLOW = ["tensorflow-cpu==2.21.0", "tf_keras==2.21.0"]
TORCH = ["torch==2.13.0", "numpy"]


@pytest.fixture(scope="module")
def frameworks_home() -> Iterator[Home]:
    with kept_home("lapis-frameworks") as home:
        yield home


@pytest.fixture
def on_shared_server(frameworks_home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("LAPIS_HOME", str(frameworks_home.path))
    return frameworks_home


@pytest.fixture
def cluster(workspace: Workspace) -> str:
    shape = AmlCompute.provisioning_configuration(vm_size="STANDARD_D2_V2", max_nodes=2)
    return str(ComputeTarget.create(workspace, "nodes", shape).name)


def with_packages(packages: list[str]) -> Environment:
    environment = Environment("framework")
    environment.python.conda_dependencies = CondaDependencies.create(pip_packages=packages)
    environment.environment_variables = {"TF_CPP_MIN_LOG_LEVEL": "2"}
    return environment


def told(run: Any, rank: int) -> Any:
    """The JSON that a rank printed."""
    lines = run._text_of(f"user_logs/std_log_{rank}.txt").splitlines()
    return json.loads(next(line for line in reversed(lines) if line.startswith("{")))


DATA = """
import json, os
import numpy as np
chance = np.random.default_rng(1)
x = chance.normal(size=(256, 4)).astype("float32")
y = (x @ np.array([[1.0], [-2.0], [3.0], [0.5]], dtype="float32")).astype("float32")
"""

MIRRORED = (
    """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before anything else touches TensorFlow
"""
    + DATA
    + """
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05), loss="mse")
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(64)
history = model.fit(data, epochs=5, steps_per_epoch=20, verbose=0)
print(json.dumps({"loss": history.history["loss"], "weights": model.get_weights()[0].ravel().tolist()}))
"""
)


def test_multi_worker_mirrored_strategy_trains_alike_on_all_workers(cluster: str, finish: Callable[..., Any]) -> None:
    run = finish(
        MIRRORED, compute_target=cluster, environment=with_packages(TENSORFLOW),
        distributed_job_config=TensorflowConfiguration(worker_count=2, parameter_server_count=0),
    )  # fmt: skip
    assert run.get_status() == "Completed", run.get_details()
    first, second = told(run, 0), told(run, 1)
    assert first["weights"] == second["weights"]
    assert first["loss"][-1] < first["loss"][0] / 10
    assert "TF_USE_LEGACY_KERAS=1" in run._text_of("user_logs/std_log.txt")


# Azure's TF_CONFIG knows workers and servers; the coordinator that TensorFlow 2 wants is worker 0.
PARAMETER_SERVERS = (
    DATA
    + """
config = json.loads(os.environ["TF_CONFIG"])
chief, *workers = config["cluster"]["worker"]
cluster = {"chief": [chief], "worker": workers, "ps": config["cluster"]["ps"]}
kind, index = config["task"]["type"], config["task"]["index"]
if kind == "worker":
    kind, index = ("chief", 0) if index == 0 else ("worker", index - 1)
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if kind != "chief":
    tf.distribute.Server(resolver.cluster_spec(), job_name=kind, task_index=index, protocol="grpc").join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.05), loss="mse")
maker = tf.keras.utils.experimental.DatasetCreator(
    lambda _: tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(64)
)
history = model.fit(maker, epochs=5, steps_per_epoch=20, verbose=0)
print(json.dumps({"loss": history.history["loss"], "where": [v.device for v in model.variables]}))
"""
)


def test_parameter_server_strategy_trains_and_workers_that_wait_for_orders_are_ended(
    cluster: str, finish: Callable[..., Any]
) -> None:
    run = finish(
        PARAMETER_SERVERS, compute_target=cluster, environment=with_packages(TENSORFLOW),
        distributed_job_config=TensorflowConfiguration(worker_count=2, parameter_server_count=1),
    )  # fmt: skip
    assert run.get_status() == "Completed", run.get_details()
    said = told(run, 0)
    assert said["loss"][-1] < said["loss"][0] / 10
    assert any("job:ps" in device for device in said["where"])
    assert "worker 1 is ended: worker 0 is done" in run._text_of("user_logs/std_log_1.txt")


BETWEEN_GRAPH = (
    DATA
    + """
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
config = json.loads(os.environ["TF_CONFIG"])
kind, index = config["task"]["type"], config["task"]["index"]
spec = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(spec, job_name=kind, task_index=index)
if kind == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=spec)):
    step = tf.train.get_or_create_global_step()
    weights = tf.get_variable("weights", shape=(4, 1), initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(tf.constant(x), weights) - tf.constant(y)))
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
hooks = [tf.train.StopAtStepHook(last_step=200)]
apart = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])  # a worker does not need the others
with tf.train.MonitoredTrainingSession(
    master=server.target, is_chief=index == 0, hooks=hooks, checkpoint_dir="outputs/model", config=apart
) as session:
    while not session.should_stop():
        _, now = session.run([train, loss])
print(json.dumps({"loss": float(now), "where": weights.device}))
"""
)


def test_workers_of_the_old_style_share_variables_on_a_parameter_server(
    cluster: str, finish: Callable[..., Any]
) -> None:
    run = finish(
        BETWEEN_GRAPH, compute_target=cluster, environment=with_packages(TENSORFLOW),
        distributed_job_config=TensorflowConfiguration(worker_count=2, parameter_server_count=1),
    )  # fmt: skip
    assert run.get_status() == "Completed", run.get_details()
    assert told(run, 0)["loss"] < 0.1 and told(run, 1)["loss"] < 0.1
    assert "job:ps" in told(run, 0)["where"]
    assert any("model.ckpt-200" in name for name in run.get_file_names())


DATA_PARALLEL = """
import json
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")  # all it needs is in its variables
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
wanted, losses = torch.tensor([[1.0], [-2.0], [3.0], [0.5]]), []
for _ in range(100):
    x = torch.randn(64, 4)
    loss = ((model(x) - x @ wanted) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
weights = model.module.weight.detach().ravel().tolist()
print(json.dumps({"first": losses[0], "last": losses[-1], "weights": weights, "world": dist.get_world_size()}))
dist.destroy_process_group()
"""


def test_pytorch_trains_data_parallel_over_gloo(cluster: str, finish: Callable[..., Any]) -> None:
    run = finish(
        DATA_PARALLEL, compute_target=cluster, environment=with_packages(TORCH),
        distributed_job_config=PyTorchConfiguration("Gloo", process_count=4, node_count=2),
    )  # fmt: skip
    assert run.get_status() == "Completed", run.get_details()
    said = [told(run, rank) for rank in range(4)]
    assert {each["world"] for each in said} == {4}
    assert all(each["weights"] == said[0]["weights"] for each in said), "every rank has the same model"
    assert said[0]["last"] < said[0]["first"] / 10


HOROVOD = (
    DATA
    + """
import horovod.tensorflow.keras as hvd
import tensorflow as tf
hvd.init()
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.05))
model.compile(optimizer=optimizer, loss="mse", experimental_run_tf_function=False)
mine = slice(hvd.rank(), None, hvd.size())
history = model.fit(
    x[mine], y[mine], batch_size=32, epochs=10, verbose=0,
    callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()],
)
weights = model.get_weights()[0].ravel().tolist()
losses = [float(loss) for loss in history.history["loss"]]
print(json.dumps({"loss": losses, "weights": weights, "size": hvd.size()}))
"""
)


def test_horovod_is_compiled_once_and_trains_over_mpi(cluster: str, finish: Callable[..., Any]) -> None:
    need("g++", "g++")
    need("make", "make")
    run = finish(
        HOROVOD, compute_target=cluster, environment=with_packages(["tensorflow-cpu==2.15.1", "horovod==0.19.5"]),
        distributed_job_config=MpiConfiguration(process_count_per_node=1, node_count=2),
    )  # fmt: skip
    assert run.get_status() == "Completed", run.get_details()
    first, second = told(run, 0), told(run, 1)
    assert first["size"] == 2 and first["weights"] == second["weights"]
    assert first["loss"][-1] < first["loss"][0] / 10
    built = run._text_of("azureml-logs/20_image_build_log.txt")
    assert "Substituted: horovod==0.19.5 -> horovod==0.28.1" in built
    another = with_packages(["tensorflow-cpu==2.15.1", "horovod", "toolz"])
    run = finish(
        "import horovod.tensorflow as hvd\nhvd.init()\nprint(hvd.size())", environment=another,
        distributed_job_config=MpiConfiguration(process_count_per_node=2),
    )  # fmt: skip
    assert run.get_status() == "Completed", run.get_details()
    built = run._text_of("azureml-logs/20_image_build_log.txt")
    assert "Horovod 0.28.1 was compiled before" in built or "It was built before" in built


MNIST = """
import argparse, glob, gzip, os, struct
import numpy as np
import tensorflow as tf
from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--data-folder")
parser.add_argument("--batch-size", type=int)
parser.add_argument("--first-layer-neurons", type=int)
parser.add_argument("--learning-rate", type=float)
given = parser.parse_args()

def load(name):
    path = glob.glob(os.path.join(given.data_folder, "**", name + "*.gz"), recursive=True)[0]
    with gzip.open(path) as file:
        dimensions = file.read(4)[3]
        shape = struct.unpack(">" + "I" * dimensions, file.read(4 * dimensions))
        return np.frombuffer(file.read(), np.uint8).reshape(shape)

x, y = load("train-images") / 255.0, load("train-labels")
test_x, test_y = load("t10k-images") / 255.0, load("t10k-labels")
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([
    tf.keras.layers.Input((28, 28)),
    tf.keras.layers.Flatten(),
    tf.keras.layers.Dense(given.first_layer_neurons, activation="relu"),
    tf.keras.layers.Dense(10, activation="softmax"),
])
model.compile(tf.keras.optimizers.SGD(given.learning_rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
run = Run.get_context()
for epoch in range(6):
    model.fit(x, y, batch_size=given.batch_size, verbose=0)
    run.log("validation_acc", float(model.evaluate(test_x, test_y, verbose=0)[1]))
os.makedirs("outputs/model", exist_ok=True)
tf.saved_model.save(model, "outputs/model")
"""


def test_a_search_over_mnist_finds_a_learning_rate_that_learns_and_stops_one_that_does_not(
    experiment: Experiment, script: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "digits").mkdir()
    for name, images, seed in (("train", 600, 1), ("t10k", 200, 2)):
        write_digits(tmp_path / "digits", name, images, seed)
    store = experiment.workspace.get_default_datastore()
    store.upload(str(tmp_path / "digits"), target_path="digits", show_progress=False)
    data = Dataset.File.from_files(store.path("digits/**"))
    config = ScriptRunConfig(
        script(MNIST), "train.py", arguments=["--data-folder", data.as_named_input("mnist").as_mount()],
        environment=with_packages(TENSORFLOW),
    )  # fmt: skip
    space = {
        "--batch-size": choice(25, 50),
        "--first-layer-neurons": choice(32),
        "--learning-rate": choice(0.1, 1e-7),
    }
    search = experiment.submit(
        HyperDriveConfig(
            GridParameterSampling(space), "validation_acc", PrimaryMetricGoal.MAXIMIZE, 4, 1, run_config=config,
            policy=BanditPolicy(slack_factor=0.5, evaluation_interval=1, delay_evaluation=2),
        )
    )  # fmt: skip
    assert search.wait_for_completion()["status"] == "Completed"
    best = search.get_best_run_by_primary_metric()
    arguments = best.get_details()["runDefinition"]["arguments"]
    assert arguments[-2:] == ["--learning-rate", "0.1"] and len(arguments) == 8
    assert max(best.get_metrics()["validation_acc"]) > 0.8
    rows = search.get_children_sorted_by_primary_metric()
    assert [json.loads(row["hyperparameters"])["--learning-rate"] for row in rows] == [0.1, 0.1, 1e-7, 1e-7]
    assert [row["status"] for row in rows[2:]] == ["Canceled", "Canceled"]
    assert all("Bandit policy" in reason for reason in search.get_diagnostics()["stopped"].values())
    model = best.register_model("digits", "outputs/model")
    assert model.version == 1


def write_digits(folder: Path, name: str, count: int, seed: int) -> None:
    """Images and labels in MNIST's format: ten patterns, each with noise of its own."""
    patterns = numpy.random.default_rng(0).integers(0, 256, (10, 28, 28))
    chance = numpy.random.default_rng(seed)
    labels = chance.integers(0, 10, count).astype(numpy.uint8)
    images = (patterns[labels] // 2 + chance.integers(0, 128, (count, 28, 28))).astype(numpy.uint8)
    with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
    with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">II", 2049, count) + labels.tobytes())
