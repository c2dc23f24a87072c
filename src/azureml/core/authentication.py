"""Ways to sign in."""

from lapis.errors import AuthenticationException as AuthenticationException
from lapis.sdk.workspace.authentication import AbstractAuthentication as AbstractAuthentication
from lapis.sdk.workspace.authentication import ArmTokenAuthentication as ArmTokenAuthentication
from lapis.sdk.workspace.authentication import Audience as Audience
from lapis.sdk.workspace.authentication import AzureCliAuthentication as AzureCliAuthentication
from lapis.sdk.workspace.authentication import AzureMLTokenAuthentication as AzureMLTokenAuthentication
from lapis.sdk.workspace.authentication import InteractiveLoginAuthentication as InteractiveLoginAuthentication
from lapis.sdk.workspace.authentication import MsiAuthentication as MsiAuthentication
from lapis.sdk.workspace.authentication import ServicePrincipalAuthentication as ServicePrincipalAuthentication
from lapis.sdk.workspace.authentication import TokenAuthentication as TokenAuthentication
