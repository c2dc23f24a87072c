"""Workspaces, and the names beside them that scripts import from here."""

from lapis.errors import AuthenticationException as AuthenticationException
from lapis.errors import ProjectSystemException as ProjectSystemException
from lapis.errors import UserErrorException as UserErrorException
from lapis.errors import WorkspaceException as WorkspaceException
from lapis.sdk.base.names import on_demand as _on_demand
from lapis.sdk.workspace.workspace import Workspace as Workspace

_HOMES = {
    "ComputeTarget": "azureml.core.compute",
    "Dataset": "azureml.core.dataset",
    "Datastore": "azureml.core.datastore",
    "Environment": "azureml.core.environment",
    "Experiment": "azureml.core.experiment",
    "InteractiveLoginAuthentication": "azureml.core.authentication",
    "Keyvault": "azureml.core.keyvault",
    "Model": "azureml.core.model",
    "Run": "azureml.core.run",
    "Webservice": "azureml.core.webservice",
}
__getattr__, __dir__ = _on_demand(__name__, _HOMES)
