"""The module paths of Azure Machine Learning SDK v1. What they lead to is in `lapis.sdk`."""

from lapis.sdk.base.conflicting_packages import warn_of_microsoft_packages as _warn_of_microsoft_packages
from lapis.sdk.base.missing_packages import find_missing_packages as _find_missing_packages
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
_find_missing_packages()
_warn_of_microsoft_packages(__path__[0])
