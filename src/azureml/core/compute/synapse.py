"""Synapse Spark pools as a compute target."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

SynapseAttachConfiguration = _stand_in("azureml.core.compute.synapse.SynapseAttachConfiguration")
SynapseCompute = _stand_in("azureml.core.compute.SynapseCompute")
