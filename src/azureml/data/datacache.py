"""Copies of datasets kept close to the compute."""

from lapis.sdk.later import stand_in as _stand_in

DatacacheHydrationTracker = _stand_in("azureml.data.datacache.DatacacheHydrationTracker")
DatacacheStore = _stand_in("azureml.data.DatacacheStore")
