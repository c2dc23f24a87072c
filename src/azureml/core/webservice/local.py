"""Web services on this machine."""

from lapis.sdk.deployment_config import (
    LocalWebserviceDeploymentConfiguration as LocalWebserviceDeploymentConfiguration,
)
from lapis.sdk.local_webservice import LocalWebservice as LocalWebservice
