"""Kubernetes clusters that serve models."""

from lapis.sdk.compute.aks_compute import AksAttachConfiguration as AksAttachConfiguration
from lapis.sdk.compute.aks_compute import AksCompute as AksCompute
from lapis.sdk.compute.aks_compute import AksProvisioningConfiguration as AksProvisioningConfiguration
from lapis.sdk.compute.aks_compute import AksUpdateConfiguration as AksUpdateConfiguration
from lapis.sdk.compute.aks_compute import SslConfiguration as SslConfiguration
from lapis.sdk.compute.aks_compute import SystemService as SystemService
