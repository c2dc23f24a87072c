"""Secrets of a workspace."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

Keyvault = _stand_in("azureml.core.Keyvault")
