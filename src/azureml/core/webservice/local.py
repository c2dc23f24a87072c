"""Web services on this machine."""

from lapis.sdk.models.deployment_config import (
    LocalWebserviceDeploymentConfiguration as LocalWebserviceDeploymentConfiguration,
)
from lapis.sdk.models.local_webservice import LocalWebservice as LocalWebservice
