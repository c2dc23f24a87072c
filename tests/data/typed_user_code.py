"""What a user of SDK v1 writes, for tests/sdk/test_types.py: mypy reads it strictly, and nobody runs it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, assert_type

import azureml.core
from azureml.contrib.services.aml_request import AMLRequest, rawhttp
from azureml.contrib.services.aml_response import AMLResponse
from azureml.core import (
    ComputeTarget,
    Dataset,
    Datastore,
    Environment,
    Experiment,
    Model,
    Run,
    RunConfiguration,
    ScriptRun,
    ScriptRunConfig,
    Webservice,
    Workspace,
)
from azureml.core.authentication import ServicePrincipalAuthentication
from azureml.core.compute import AksCompute, AmlCompute, ComputeInstance
from azureml.core.compute.amlcompute import AmlComputeStatus
from azureml.core.compute.computeinstance import ComputeInstanceStatus
from azureml.core.compute_target import ComputeTargetException
from azureml.core.conda_dependencies import CondaDependencies
from azureml.core.image import ContainerImage
from azureml.core.model import InferenceConfig, ModelPackage
from azureml.core.profile import ModelProfile
from azureml.core.runconfig import DockerConfiguration, MpiConfiguration, PyTorchConfiguration
from azureml.core.webservice import AciWebservice, AksWebservice, LocalWebservice
from azureml.data import FileDataset, OutputFileDatasetConfig, TabularDataset
from azureml.data.azure_storage_datastore import AbstractAzureStorageDatastore, AzureBlobDatastore
from azureml.data.data_reference import DataReference
from azureml.data.datapath import DataPath
from azureml.data.dataset_consumption_config import DatasetConsumptionConfig
from azureml.exceptions import UserErrorException, WebserviceException
from azureml.monitoring import ModelDataCollector
from azureml.pipeline.core import Pipeline
from azureml.pipeline.steps import PythonScriptStep
from azureml.train.dnn import PyTorch
from azureml.train.estimator import Estimator
from azureml.train.hyperdrive import (
    BanditPolicy,
    HyperDriveConfig,
    HyperDriveRun,
    PrimaryMetricGoal,
    RandomParameterSampling,
    choice,
    uniform,
)
from azureml.widgets import RunDetails
from lapis.compute import RayCompute
from lapis.sweeps import ASHA, when

print(azureml.core.VERSION)

# -- a workspace and what it holds

workspace = Workspace.from_config(auth=ServicePrincipalAuthentication("tenant", "id", "password"))
assert_type(workspace, Workspace)
assert_type(workspace.experiments["mnist"], Experiment)
assert_type(workspace.compute_targets["gpu"], ComputeTarget)
assert_type(workspace.compute_targets["gpu"].status, AmlComputeStatus | ComputeInstanceStatus)
assert_type(workspace.datasets["cats"], FileDataset | TabularDataset)
assert_type(workspace.datastores["blobs"], AbstractAzureStorageDatastore)
assert_type(workspace.environments["torch"], Environment)
assert_type(workspace.models["mnist"].version, int)
assert_type(workspace.webservices["mnist"].scoring_uri, str | None)
assert_type(workspace.get_run("mnist_1"), Run)

# -- compute

try:
    cluster = AmlCompute(workspace, "gpu")
except ComputeTargetException:
    cluster = ComputeTarget.create(workspace, "gpu", AmlCompute.provisioning_configuration("STANDARD_NC6", max_nodes=4))
cluster.wait_for_completion(show_output=True)
assert_type(cluster.get_status().current_node_count, int)
assert_type(cluster.get_active_runs(), Iterator[Run])
assert_type(ComputeTarget.create(workspace, "me", ComputeInstance.provisioning_configuration()), ComputeInstance)
assert_type(ComputeTarget.attach(workspace, "aks", AksCompute.attach_configuration("group", "name")), AksCompute)
assert_type(ComputeTarget.attach(workspace, "ray", RayCompute.attach_configuration("10.0.0.5:6379")), RayCompute)
assert_type(ComputeTarget.list(workspace), list[ComputeTarget])

# -- data

store = workspace.get_default_datastore()
assert_type(store.upload("data", "mnist"), DataReference)
assert_type(Datastore.get(workspace, "blobs").path("mnist").as_mount(), DataReference)
assert_type(Datastore(workspace, "blobs").download("here"), int)
assert_type(
    Datastore.register_azure_blob_container(workspace, "blobs", "container", "account", account_key="key"),
    AzureBlobDatastore,
)
table = Dataset.Tabular.from_delimited_files([(store, "mnist/*.csv")])
assert_type(table.take(10).keep_columns(["age"]).register(workspace, "mnist"), TabularDataset)
print(table.to_pandas_dataframe().describe())
assert_type(table.random_split(0.8), tuple[TabularDataset, TabularDataset])
assert_type(table[table["age"] > 30], TabularDataset)
files = Dataset.File.from_files(DataPath(store, "mnist"))
assert_type(files.to_path(), list[str])
assert_type(files.as_named_input("mnist").as_mount(), DatasetConsumptionConfig)
assert_type(Dataset.get_by_name(workspace, "mnist", version=2), FileDataset | TabularDataset)
output = OutputFileDatasetConfig("cleaned", destination=(store, "cleaned"))
assert_type(output.as_upload().register_on_complete("cleaned"), OutputFileDatasetConfig)

# -- runs

environment = Environment.from_conda_specification("mnist", "environment.yml")
environment.python.conda_dependencies = CondaDependencies.create(pip_packages=["torch"])
assert_type(environment.register(workspace).build(workspace).status, str)
experiment = Experiment(workspace, "mnist")
config = ScriptRunConfig(
    "src",
    script="train.py",
    arguments=["--data", files.as_mount(), "--to", output],
    compute_target=cluster,
    environment=environment,
    distributed_job_config=PyTorchConfiguration(node_count=2),
    docker_runtime_config=DockerConfiguration(use_docker=True),
)
config.run_config.mpi = MpiConfiguration(2)
assert_type(config.run_config, RunConfiguration)
run = experiment.submit(config, tags={"try": "1"})
assert_type(run, ScriptRun)
assert_type(run.get_metrics(), dict[str, Any])
assert_type(run.wait_for_completion(show_output=True), dict[str, Any])
assert_type(run.get_status(), str)
assert_type(run.get_environment(), Environment)
assert_type(run.parent, Run | None)
assert_type(run.get_children(), Iterator[Run])
assert_type([each.number for each in experiment.get_runs()], list[int])
assert_type(experiment.submit(Estimator("src", compute_target="gpu", entry_script="train.py")).id, str)
assert_type(experiment.submit(PyTorch("src", compute_target=cluster, entry_script="train.py")), ScriptRun)
with experiment.start_logging() as interactive:
    interactive.log("loss", 0.1)
context = Run.get_context()
context.log("loss", 0.1)
assert_type(context.experiment.workspace, Workspace)
assert_type(context.output_datasets["cleaned"], str)

# -- a search

search = experiment.submit(
    HyperDriveConfig(
        run_config=config,
        hyperparameter_sampling=RandomParameterSampling({"--rate": uniform(0.1, 1), "--size": choice(16, 32)}),
        policy=BanditPolicy(evaluation_interval=2, slack_factor=0.1),
        primary_metric_name="loss",
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
        max_total_runs=20,
    )
)
assert_type(search, HyperDriveRun)
best = search.get_best_run_by_primary_metric()
if best is not None:
    assert_type(best.register_model("mnist", "outputs/model.onnx"), Model)

experiment.submit(
    HyperDriveConfig(
        RandomParameterSampling({"--rate": when("--size", [16], uniform(0.1, 1)), "--size": choice(16, 32)}),
        "loss",
        PrimaryMetricGoal.MINIMIZE,
        max_total_runs=20,
        policy=ASHA(first_rung=1),
        run_config=config,
    )
)

# -- models and services

model = Model.register(workspace, "model.pkl", "mnist", model_framework=Model.Framework.SCIKITLEARN)
inference = InferenceConfig(entry_script="score.py", environment=environment)
service = Model.deploy(workspace, "mnist", [model], inference, AciWebservice.deploy_configuration(cpu_cores=1))
service.wait_for_deployment(show_output=True)
assert_type(service, Webservice)
assert_type(service.scoring_uri, str | None)
assert_type(service.state, str)
assert_type(service.get_keys(), tuple[str, str])
assert_type(service.models, list[Model])
assert_type(AksWebservice(workspace, "mnist").get_token(), tuple[str, datetime])
assert_type(LocalWebservice(workspace, "mnist").port, int | None)
assert_type(Model.package(workspace, [model], inference), ModelPackage)
assert_type(Model.profile(workspace, "mnist", [model], inference, table), ModelProfile)
assert_type(model.export_onnx(), str)
assert_type(model.export_onnx(model_name="mnist-onnx"), Model)
assert_type(model.run, Run | None)
assert_type(workspace.images["mnist"].models, list[Model])
assert_type(
    ContainerImage.create(workspace, "mnist", [model], ContainerImage.image_configuration("score.py", "python")),
    ContainerImage,
)

collector = ModelDataCollector("mnist", designation="inputs")


@rawhttp
def score(request: AMLRequest) -> AMLResponse:
    assert_type(request.method, str)
    try:
        return AMLResponse(request.get_json(), 200)
    except (UserErrorException, WebserviceException) as error:
        return AMLResponse(str(error), 400)


# -- what is not there yet can be named all the same


def show(pipeline: Pipeline, step: PythonScriptStep) -> None:
    RunDetails(pipeline.submit("mnist")).show()
