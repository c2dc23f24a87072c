"""The request that an entry script marked with `rawhttp` is given."""

from lapis.sdk.later import stand_in as _stand_in

AMLRequest = _stand_in("azureml.contrib.services.aml_request.AMLRequest")
rawhttp = _stand_in("azureml.contrib.services.rawhttp")
