"""How a run reads a dataset."""

from lapis.sdk.data.consumption import DatasetConsumptionConfig as DatasetConsumptionConfig
