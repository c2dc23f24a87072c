"""A path on a datastore."""

from lapis.sdk.data.data_reference import DataPath as DataPath
from lapis.sdk.data.data_reference import DataPathComputeBinding as DataPathComputeBinding
