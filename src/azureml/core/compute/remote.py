"""Machines reached over SSH."""

from lapis.sdk.later import stand_in as _stand_in

RemoteCompute = _stand_in("azureml.core.compute.RemoteCompute")
RemoteComputeAttachConfiguration = _stand_in("azureml.core.compute.remote.RemoteComputeAttachConfiguration")
