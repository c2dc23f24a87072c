"""Other services linked to a workspace."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

LinkedService = _stand_in("azureml.core.LinkedService")
LinkedServiceConfiguration = _stand_in("azureml.core.linked_service.LinkedServiceConfiguration")
SynapseWorkspaceLinkedServiceConfiguration = _stand_in("azureml.core.SynapseWorkspaceLinkedServiceConfiguration")
