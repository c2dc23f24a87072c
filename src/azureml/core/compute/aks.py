"""Kubernetes clusters that serve models."""

from lapis.sdk.later import stand_in as _stand_in

AksAttachConfiguration = _stand_in("azureml.core.compute.aks.AksAttachConfiguration")
AksCompute = _stand_in("azureml.core.compute.AksCompute")
AksProvisioningConfiguration = _stand_in("azureml.core.compute.aks.AksProvisioningConfiguration")
AksUpdateConfiguration = _stand_in("azureml.core.compute.aks.AksUpdateConfiguration")
SslConfiguration = _stand_in("azureml.core.compute.aks.SslConfiguration")
SystemService = _stand_in("azureml.core.compute.aks.SystemService")
