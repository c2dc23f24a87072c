"""Steps that are run by services of Azure. Each says at once what does the same here."""

from __future__ import annotations

from typing import Any

from lapis.errors import UserErrorException
from lapis.sdk.pipelines.steps import PipelineStep


class _OfAzure(PipelineStep):
    _service = ""
    _instead = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UserErrorException(
            f"{type(self).__name__} is run by {self._service}, a service of Azure's that Lapis does not have. "
            f"{self._instead}"
        )


class AdlaStep(_OfAzure):
    _service = "Azure Data Lake Analytics"
    _instead = "Write the query as a script that reads its inputs, and run that with PythonScriptStep."


class AzureBatchStep(_OfAzure):
    _service = "Azure Batch"
    _instead = "CommandStep runs an executable on a compute target of the workspace."


class DatabricksStep(_OfAzure):
    _service = "Azure Databricks"
    _instead = "PythonScriptStep runs the Python script, with pyspark in its environment where it needs Spark."


class KustoStep(_OfAzure):
    _service = "Azure Data Explorer"
    _instead = "A PythonScriptStep can send the query with the package azure-kusto-data."


class SynapseSparkStep(_OfAzure):
    _service = "Azure Synapse"
    _instead = "PythonScriptStep runs the script, with pyspark in its environment."
