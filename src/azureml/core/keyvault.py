"""Secrets of a workspace."""

from lapis.sdk.workspace.keyvault import Keyvault as Keyvault
from lapis.sdk.workspace.keyvault import KeyVaultContentType as KeyVaultContentType
