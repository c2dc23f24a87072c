"""Blob containers and file shares as datastores."""

from lapis.sdk.later import stand_in as _stand_in

AbstractAzureStorageDatastore = _stand_in("azureml.data.azure_storage_datastore.AbstractAzureStorageDatastore")
AzureBlobDatastore = _stand_in("azureml.data.azure_storage_datastore.AzureBlobDatastore")
AzureFileDatastore = _stand_in("azureml.data.azure_storage_datastore.AzureFileDatastore")
