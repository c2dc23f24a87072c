"""Web services and endpoints on a Kubernetes cluster."""

from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.models.aks_webservice import AksEndpoint as AksEndpoint
from lapis.sdk.models.aks_webservice import AksWebservice as AksWebservice
from lapis.sdk.models.deployment_config import AksEndpointDeploymentConfiguration as AksEndpointDeploymentConfiguration
from lapis.sdk.models.deployment_config import AksServiceDeploymentConfiguration as AksServiceDeploymentConfiguration
from lapis.sdk.models.service_parts import AksServiceAccessToken as AksServiceAccessToken
from lapis.sdk.models.service_parts import AutoScaler as AutoScaler
from lapis.sdk.models.service_parts import DataCollection as DataCollection
from lapis.sdk.models.service_parts import LivenessProbeRequirements as LivenessProbeRequirements
