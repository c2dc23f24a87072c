"""What all web services have in common."""

from azureml.core.webservice.aks import AutoScaler as AutoScaler
from azureml.core.webservice.aks import DataCollection as DataCollection
from azureml.core.webservice.aks import LivenessProbeRequirements as LivenessProbeRequirements
from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.later import stand_in as _stand_in

WebServiceAccessToken = _stand_in("azureml.core.webservice.webservice.WebServiceAccessToken")
Webservice = _stand_in("azureml.core.Webservice")
WebserviceDeploymentConfiguration = _stand_in("azureml.core.webservice.webservice.WebserviceDeploymentConfiguration")
