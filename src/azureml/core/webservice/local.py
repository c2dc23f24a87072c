"""Web services on this machine."""

from lapis.sdk.later import stand_in as _stand_in

LocalWebservice = _stand_in("azureml.core.webservice.LocalWebservice")
LocalWebserviceDeploymentConfiguration = _stand_in(
    "azureml.core.webservice.local.LocalWebserviceDeploymentConfiguration"
)
