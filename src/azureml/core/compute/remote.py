"""Machines reached over SSH."""

from lapis.sdk.attached_compute import RemoteCompute as RemoteCompute
from lapis.sdk.attached_compute import RemoteComputeAttachConfiguration as RemoteComputeAttachConfiguration
