"""Blob containers and file shares as datastores."""

from lapis.sdk.data.datastore import AbstractAzureStorageDatastore as AbstractAzureStorageDatastore
from lapis.sdk.data.datastore import AzureBlobDatastore as AzureBlobDatastore
from lapis.sdk.data.datastore import AzureFileDatastore as AzureFileDatastore
