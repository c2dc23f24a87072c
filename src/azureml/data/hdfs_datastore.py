"""HDFS as a datastore."""

from lapis.sdk.later import stand_in as _stand_in

HDFSDatastore = _stand_in("azureml.data.hdfs_datastore.HDFSDatastore")
