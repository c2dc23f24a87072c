"""Mounts that last as long as a `with` block."""

from lapis.sdk.datastore_context import DatastoreContextManager as DatastoreContextManager
from lapis.sdk.file_dataset import DatasetContextManager as DatasetContextManager
