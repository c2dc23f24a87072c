"""The front door of SDK v1. A name is looked up when first used, so that importing this is quick."""

import os as _os

from lapis.later import TYPE_CHECKING
from lapis.sdk.base.conflicting_packages import warn_of_microsoft_packages as _warn_of_microsoft_packages
from lapis.sdk.base.names import on_demand as _on_demand
from lapis.version import AZUREML_VERSION as VERSION

if TYPE_CHECKING:  # for editors and type checkers, which do not see what is looked up later
    from azureml.core.compute import ComputeTarget as ComputeTarget
    from azureml.core.compute_target import attach_legacy_compute_target as attach_legacy_compute_target
    from azureml.core.compute_target import is_compute_target_prepared as is_compute_target_prepared
    from azureml.core.compute_target import prepare_compute_target as prepare_compute_target
    from azureml.core.compute_target import remove_legacy_compute_target as remove_legacy_compute_target
    from azureml.core.dataset import Dataset as Dataset
    from azureml.core.datastore import Datastore as Datastore
    from azureml.core.image import Image as Image
    from azureml.core.keyvault import Keyvault as Keyvault
    from azureml.core.linked_service import LinkedService as LinkedService
    from azureml.core.linked_service import (
        SynapseWorkspaceLinkedServiceConfiguration as SynapseWorkspaceLinkedServiceConfiguration,
    )
    from azureml.core.model import Model as Model
    from azureml.core.private_endpoint import PrivateEndPoint as PrivateEndPoint
    from azureml.core.private_endpoint import PrivateEndPointConfig as PrivateEndPointConfig
    from azureml.core.webservice import Webservice as Webservice
    from lapis.sdk.base.diagnostic_log import diagnostic_log as diagnostic_log
    from lapis.sdk.config.runconfig import RunConfiguration as RunConfiguration
    from lapis.sdk.config.script_run_config import ScriptRunConfig as ScriptRunConfig
    from lapis.sdk.environments.container_registry import ContainerRegistry as ContainerRegistry
    from lapis.sdk.environments.environment import Environment as Environment
    from lapis.sdk.runs.experiment import Experiment as Experiment
    from lapis.sdk.runs.run import Run as Run
    from lapis.sdk.runs.run import get_run as get_run
    from lapis.sdk.runs.script_run import ScriptRun as ScriptRun
    from lapis.sdk.workspace.workspace import Workspace as Workspace

_HOMES = {
    "ComputeTarget": "azureml.core.compute",
    "ContainerRegistry": "lapis.sdk.environments.container_registry",
    "Dataset": "azureml.core.dataset",
    "Datastore": "azureml.core.datastore",
    "Environment": "lapis.sdk.environments.environment",
    "Experiment": "lapis.sdk.runs.experiment",
    "Image": "azureml.core.image",
    "Keyvault": "azureml.core.keyvault",
    "LinkedService": "azureml.core.linked_service",
    "Model": "azureml.core.model",
    "PrivateEndPoint": "azureml.core.private_endpoint",
    "PrivateEndPointConfig": "azureml.core.private_endpoint",
    "Run": "lapis.sdk.runs.run",
    "RunConfiguration": "lapis.sdk.config.runconfig",
    "ScriptRun": "lapis.sdk.runs.script_run",
    "ScriptRunConfig": "lapis.sdk.config.script_run_config",
    "SynapseWorkspaceLinkedServiceConfiguration": "azureml.core.linked_service",
    "Webservice": "azureml.core.webservice",
    "Workspace": "lapis.sdk.workspace.workspace",
    "attach_legacy_compute_target": "azureml.core.compute_target",
    "diagnostic_log": "lapis.sdk.base.diagnostic_log",
    "get_run": "lapis.sdk.runs.run",
    "is_compute_target_prepared": "azureml.core.compute_target",
    "prepare_compute_target": "azureml.core.compute_target",
    "remove_legacy_compute_target": "azureml.core.compute_target",
}

__version__ = VERSION
__all__ = ["VERSION", *_HOMES]
__getattr__, __dir__ = _on_demand(__name__, _HOMES)
_warn_of_microsoft_packages(_os.path.dirname(__path__[0]))  # `azureml` itself may not be ours
