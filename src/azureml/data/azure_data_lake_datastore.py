"""Data Lake as a datastore."""

from lapis.sdk.datastore import AzureDataLakeGen2Datastore as AzureDataLakeGen2Datastore
from lapis.sdk.later import stand_in as _stand_in

AbstractADLSDatastore = _stand_in("azureml.data.azure_data_lake_datastore.AbstractADLSDatastore")
AzureDataLakeDatastore = _stand_in("azureml.data.azure_data_lake_datastore.AzureDataLakeDatastore")
