"""Settings of one of the caches."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatacacheSingularitySettings = _stand_in("azureml.data.datacache_singularity_settings.DatacacheSingularitySettings")
SingularityPriority = _stand_in("azureml.data.datacache_singularity_settings.SingularityPriority")
SingularitySlaTier = _stand_in("azureml.data.datacache_singularity_settings.SingularitySlaTier")
