"""Web services in a container instance."""

from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.later import stand_in as _stand_in

AciServiceDeploymentConfiguration = _stand_in("azureml.core.webservice.aci.AciServiceDeploymentConfiguration")
AciWebservice = _stand_in("azureml.core.webservice.AciWebservice")
EncryptionProperties = _stand_in("azureml.core.webservice.aci.EncryptionProperties")
VnetConfiguration = _stand_in("azureml.core.webservice.aci.VnetConfiguration")
