"""How a run reads a dataset."""

from lapis.sdk.consumption import DatasetConsumptionConfig as DatasetConsumptionConfig
