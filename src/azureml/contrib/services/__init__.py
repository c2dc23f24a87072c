"""What an entry script imports to see requests as they came."""

from azureml.contrib.services.aml_request import rawhttp as rawhttp
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
