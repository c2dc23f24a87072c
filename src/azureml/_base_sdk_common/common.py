"""Private to SDK v1, but scripts import exceptions from here."""

from lapis.errors import AuthenticationException as AuthenticationException
from lapis.errors import AzureMLException as AzureMLException
from lapis.errors import ProjectSystemException as ProjectSystemException
from lapis.errors import RunConfigurationException as RunConfigurationException
from lapis.errors import UserErrorException as UserErrorException
from lapis.errors import WorkspaceException as WorkspaceException
