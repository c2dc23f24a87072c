"""The Databricks file system as a datastore."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DBFSDatastore = _stand_in("azureml.data.dbfs_datastore.DBFSDatastore")
