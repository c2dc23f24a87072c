"""A step on Kusto."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

KustoStep = _stand_in("azureml.pipeline.steps.KustoStep")
