"""HDFS as a datastore."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

HDFSDatastore = _stand_in("azureml.data.hdfs_datastore.HDFSDatastore")
