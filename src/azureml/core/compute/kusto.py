"""Kusto as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

KustoAttachConfiguration = _stand_in("azureml.core.compute.kusto.KustoAttachConfiguration")
KustoCompute = _stand_in("azureml.core.compute.KustoCompute")
