"""What the container of a web service may take."""

from lapis.sdk.later import stand_in as _stand_in

ContainerResourceRequirements = _stand_in("azureml.core.webservice.aci.ContainerResourceRequirements")
