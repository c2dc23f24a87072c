"""Data Lake as a datastore."""

from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.data.datastore import AzureDataLakeGen2Datastore as AzureDataLakeGen2Datastore

AbstractADLSDatastore = _stand_in("azureml.data.azure_data_lake_datastore.AbstractADLSDatastore")
AzureDataLakeDatastore = _stand_in("azureml.data.azure_data_lake_datastore.AzureDataLakeDatastore")
