"""Compute targets that Lapis has and SDK v1 had not."""

from lapis.sdk.compute.attached_compute import RayCompute as RayCompute
from lapis.sdk.compute.attached_compute import RayComputeAttachConfiguration as RayComputeAttachConfiguration

__all__ = ["RayCompute", "RayComputeAttachConfiguration"]
