"""Web services and endpoints on a Kubernetes cluster."""

from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.later import stand_in as _stand_in

AksEndpoint = _stand_in("azureml.core.webservice.AksEndpoint")
AksEndpointDeploymentConfiguration = _stand_in("azureml.core.webservice.aks.AksEndpointDeploymentConfiguration")
AksServiceAccessToken = _stand_in("azureml.core.webservice.aks.AksServiceAccessToken")
AksServiceDeploymentConfiguration = _stand_in("azureml.core.webservice.aks.AksServiceDeploymentConfiguration")
AksWebservice = _stand_in("azureml.core.webservice.AksWebservice")
AutoScaler = _stand_in("azureml.core.webservice.aks.AutoScaler")
DataCollection = _stand_in("azureml.core.webservice.aks.DataCollection")
LivenessProbeRequirements = _stand_in("azureml.core.webservice.aks.LivenessProbeRequirements")
