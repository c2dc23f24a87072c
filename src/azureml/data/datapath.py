"""A path on a datastore."""

from lapis.sdk.later import stand_in as _stand_in

DataPath = _stand_in("azureml.data.datapath.DataPath")
DataPathComputeBinding = _stand_in("azureml.data.datapath.DataPathComputeBinding")
