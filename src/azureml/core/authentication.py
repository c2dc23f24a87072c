"""Ways to sign in."""

from lapis.sdk.authentication import AbstractAuthentication as AbstractAuthentication
from lapis.sdk.authentication import ArmTokenAuthentication as ArmTokenAuthentication
from lapis.sdk.authentication import Audience as Audience
from lapis.sdk.authentication import AzureCliAuthentication as AzureCliAuthentication
from lapis.sdk.authentication import AzureMLTokenAuthentication as AzureMLTokenAuthentication
from lapis.sdk.authentication import InteractiveLoginAuthentication as InteractiveLoginAuthentication
from lapis.sdk.authentication import MsiAuthentication as MsiAuthentication
from lapis.sdk.authentication import ServicePrincipalAuthentication as ServicePrincipalAuthentication
from lapis.sdk.authentication import TokenAuthentication as TokenAuthentication
