"""Clusters that grow and shrink with the queue."""

from lapis.sdk.later import stand_in as _stand_in

AmlCompute = _stand_in("azureml.core.compute.AmlCompute")
AmlComputeNodeStateCounts = _stand_in("azureml.core.compute.amlcompute.AmlComputeNodeStateCounts")
AmlComputeProvisioningConfiguration = _stand_in("azureml.core.compute.amlcompute.AmlComputeProvisioningConfiguration")
AmlComputeStatus = _stand_in("azureml.core.compute.amlcompute.AmlComputeStatus")
ScaleSettings = _stand_in("azureml.core.compute.amlcompute.ScaleSettings")
