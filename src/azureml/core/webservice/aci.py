"""Web services in a container instance."""

from azureml.core.webservice.container_resource_requirements import (
    ContainerResourceRequirements as ContainerResourceRequirements,
)
from lapis.sdk.models.aci_webservice import AciWebservice as AciWebservice
from lapis.sdk.models.deployment_config import AciServiceDeploymentConfiguration as AciServiceDeploymentConfiguration
from lapis.sdk.models.service_parts import EncryptionProperties as EncryptionProperties
from lapis.sdk.models.service_parts import VnetConfiguration as VnetConfiguration
