"""Blob containers and file shares as datastores."""

from lapis.sdk.datastore import AbstractAzureStorageDatastore as AbstractAzureStorageDatastore
from lapis.sdk.datastore import AzureBlobDatastore as AzureBlobDatastore
from lapis.sdk.datastore import AzureFileDatastore as AzureFileDatastore
