"""What all web services have in common."""

from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.models.deployment_config import WebserviceDeploymentConfiguration as WebserviceDeploymentConfiguration
from lapis.sdk.models.service_parts import AutoScaler as AutoScaler
from lapis.sdk.models.service_parts import DataCollection as DataCollection
from lapis.sdk.models.service_parts import LivenessProbeRequirements as LivenessProbeRequirements
from lapis.sdk.models.service_parts import WebServiceAccessToken as WebServiceAccessToken
from lapis.sdk.models.webservice import Webservice as Webservice
