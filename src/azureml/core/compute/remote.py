"""Machines reached over SSH."""

from lapis.sdk.compute.attached_compute import RemoteCompute as RemoteCompute
from lapis.sdk.compute.attached_compute import RemoteComputeAttachConfiguration as RemoteComputeAttachConfiguration
