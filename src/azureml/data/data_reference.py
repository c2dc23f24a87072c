"""A path on a datastore, made available to a run."""

from lapis.sdk.data.data_reference import DataReference as DataReference
