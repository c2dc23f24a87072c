"""Mounts that last as long as a `with` block."""

from lapis.sdk.data.datastore_context import DatastoreContextManager as DatastoreContextManager
from lapis.sdk.data.file_dataset import DatasetContextManager as DatasetContextManager
