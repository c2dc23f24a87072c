"""Deployed models, by where they are deployed."""

from azureml.core.webservice.aci import AciWebservice as AciWebservice
from azureml.core.webservice.aks import AksEndpoint as AksEndpoint
from azureml.core.webservice.aks import AksWebservice as AksWebservice
from azureml.core.webservice.local import LocalWebservice as LocalWebservice
from azureml.core.webservice.unknown_webservice import UnknownWebservice as UnknownWebservice
from azureml.core.webservice.webservice import Webservice as Webservice
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
