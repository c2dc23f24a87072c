"""What an entry script imports to keep the data that it sees."""

from lapis.sdk.models.model_data_collector import ModelDataCollector as ModelDataCollector
