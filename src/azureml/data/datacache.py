"""Copies of datasets kept close to the compute."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatacacheHydrationTracker = _stand_in("azureml.data.datacache.DatacacheHydrationTracker")
DatacacheStore = _stand_in("azureml.data.DatacacheStore")
