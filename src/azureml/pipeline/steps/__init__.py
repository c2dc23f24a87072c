"""The steps of a pipeline, each by its kind."""

from azureml.pipeline.steps.adla_step import AdlaStep as AdlaStep
from azureml.pipeline.steps.automl_step import AutoMLStep as AutoMLStep
from azureml.pipeline.steps.automl_step import AutoMLStepRun as AutoMLStepRun
from azureml.pipeline.steps.azurebatch_step import AzureBatchStep as AzureBatchStep
from azureml.pipeline.steps.command_step import CommandStep as CommandStep
from azureml.pipeline.steps.data_transfer_step import DataTransferStep as DataTransferStep
from azureml.pipeline.steps.databricks_step import DatabricksStep as DatabricksStep
from azureml.pipeline.steps.estimator_step import EstimatorStep as EstimatorStep
from azureml.pipeline.steps.hyper_drive_step import HyperDriveStep as HyperDriveStep
from azureml.pipeline.steps.hyper_drive_step import HyperDriveStepRun as HyperDriveStepRun
from azureml.pipeline.steps.kusto_step import KustoStep as KustoStep
from azureml.pipeline.steps.module_step import ModuleStep as ModuleStep
from azureml.pipeline.steps.mpi_step import MpiStep as MpiStep
from azureml.pipeline.steps.parallel_run_config import ParallelRunConfig as ParallelRunConfig
from azureml.pipeline.steps.parallel_run_step import ParallelRunStep as ParallelRunStep
from azureml.pipeline.steps.python_script_step import PythonScriptStep as PythonScriptStep
from azureml.pipeline.steps.r_script_step import RScriptStep as RScriptStep
from azureml.pipeline.steps.synapse_spark_step import SynapseSparkStep as SynapseSparkStep
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
