"""Private network endpoints of a workspace."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

PrivateEndPoint = _stand_in("azureml.core.PrivateEndPoint")
PrivateEndPointConfig = _stand_in("azureml.core.PrivateEndPointConfig")
