"""The answer of an entry script that sets its own status and headers."""

from lapis.sdk.later import stand_in as _stand_in

AMLResponse = _stand_in("azureml.contrib.services.aml_response.AMLResponse")
