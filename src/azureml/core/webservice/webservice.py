"""What all web services have in common."""

from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.deployment_config import WebserviceDeploymentConfiguration as WebserviceDeploymentConfiguration
from lapis.sdk.service_parts import AutoScaler as AutoScaler
from lapis.sdk.service_parts import DataCollection as DataCollection
from lapis.sdk.service_parts import LivenessProbeRequirements as LivenessProbeRequirements
from lapis.sdk.service_parts import WebServiceAccessToken as WebServiceAccessToken
from lapis.sdk.webservice import Webservice as Webservice
