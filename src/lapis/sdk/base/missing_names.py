"""Names of SDK v1 that this release of Lapis does not have yet, and what stands in for them.

A script may import every one of them and use it in a type hint, in `isinstance`, in `except` or as a base
class. Only when it is called, or something of it is, does it say by its full name that it is not there yet.
"""

from __future__ import annotations

from typing import Any

from lapis.errors import NotThereYet

CLASS, FUNCTION = "class", "function"


def stand_in(path: str) -> Any:
    """Return what stands in for `path`, a row of NOT_THERE_YET: always the same object for the same path."""
    if path not in _made:
        _made[path] = _MAKERS[NOT_THERE_YET[path]](*path.rsplit(".", 1))
    return _made[path]


class Missing(type):
    """The type of the classes that stand in."""

    _stands_for: str

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotThereYet(cls._stands_for)

    def __getattr__(cls, name: str) -> Any:
        # No user asks for these: copy, pickle and notebooks look for protocols, pydoc again for what it has.
        if name.startswith("_") or name in dir(cls):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        raise NotThereYet(f"{cls._stands_for}.{name}")


def missing_class(module: str, name: str) -> Any:
    path = f"{module}.{name}"
    bases = (Exception,) if name.endswith(("Exception", "Error")) else ()  # so that `except` can name it
    return Missing(name, bases, {"__module__": module, "__doc__": _doc(path), "_stands_for": path})


def _missing_function(module: str, name: str) -> Any:
    path = f"{module}.{name}"

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotThereYet(path)

    missing.__module__, missing.__doc__ = module, _doc(path)
    missing.__name__ = missing.__qualname__ = name
    return missing


def _doc(path: str) -> str:
    return f"{path} of SDK v1. Not there yet in this release of Lapis."


_MAKERS: dict[str, Any] = {CLASS: missing_class, FUNCTION: _missing_function}
_made: dict[str, Any] = {}

# By the shortest path that SDK v1 offers for each.
NOT_THERE_YET = {
    "azureml.core.LinkedService": CLASS,
    "azureml.core.PrivateEndPoint": CLASS,
    "azureml.core.PrivateEndPointConfig": CLASS,
    "azureml.core.SynapseWorkspaceLinkedServiceConfiguration": CLASS,
    "azureml.core.attach_legacy_compute_target": FUNCTION,
    "azureml.core.is_compute_target_prepared": FUNCTION,
    "azureml.core.prepare_compute_target": FUNCTION,
    "azureml.core.remove_legacy_compute_target": FUNCTION,
    "azureml.core.compute.AdlaCompute": CLASS,
    "azureml.core.compute.BatchCompute": CLASS,
    "azureml.core.compute.DataFactoryCompute": CLASS,
    "azureml.core.compute.DatabricksCompute": CLASS,
    "azureml.core.compute.HDInsightCompute": CLASS,
    "azureml.core.compute.KustoCompute": CLASS,
    "azureml.core.compute.SynapseCompute": CLASS,
    "azureml.core.compute.adla.DataLakeAnalyticsAttachConfiguration": CLASS,
    "azureml.core.compute.batch.BatchAttachConfiguration": CLASS,
    "azureml.core.compute.databricks.DatabricksAttachConfiguration": CLASS,
    "azureml.core.compute.datafactory.DataFactoryAttachConfiguration": CLASS,
    "azureml.core.compute.datafactory.DataFactoryProvisioningConfiguration": CLASS,
    "azureml.core.compute.dsvm.DsvmProvisioningConfiguration": CLASS,
    "azureml.core.compute.hdinsight.HDInsightAttachConfiguration": CLASS,
    "azureml.core.compute.kubernetescompute.KubernetesComputeStatus": CLASS,
    "azureml.core.compute.kusto.KustoAttachConfiguration": CLASS,
    "azureml.core.compute.synapse.SynapseAttachConfiguration": CLASS,
    "azureml.core.compute_target.AbstractComputeTarget": CLASS,
    "azureml.core.linked_service.LinkedServiceConfiguration": CLASS,
    "azureml.core.run.LinkOutput": CLASS,
    "azureml.data.DatacacheStore": CLASS,
    "azureml.data.HDFSOutputDatasetConfig": CLASS,
    "azureml.data.LinkFileOutputDatasetConfig": CLASS,
    "azureml.data.LinkTabularOutputDatasetConfig": CLASS,
    "azureml.data.azure_data_lake_datastore.AbstractADLSDatastore": CLASS,
    "azureml.data.azure_data_lake_datastore.AzureDataLakeDatastore": CLASS,
    "azureml.data.datacache.DatacacheHydrationTracker": CLASS,
    "azureml.data.datacache_consumption_config.DatacacheConsumptionConfig": CLASS,
    "azureml.data.datacache_singularity_settings.DatacacheSingularitySettings": CLASS,
    "azureml.data.datacache_singularity_settings.SingularityPriority": CLASS,
    "azureml.data.datacache_singularity_settings.SingularitySlaTier": CLASS,
    "azureml.data.dataset_action_run.DatasetActionRun": CLASS,
    "azureml.data.dataset_definition.DatasetDefinition": CLASS,
    "azureml.data.dataset_profile.DatasetProfile": CLASS,
    "azureml.data.dataset_profile_run.DatasetProfileRun": CLASS,
    "azureml.data.dataset_profile_run_config.DatasetProfileRunConfig": CLASS,
    "azureml.data.dataset_snapshot.DatasetSnapshot": CLASS,
    "azureml.data.dbfs_datastore.DBFSDatastore": CLASS,
    "azureml.data.hdfs_datastore.HDFSDatastore": CLASS,
    "azureml.data.sql_data_reference.SqlDataReference": CLASS,
    "azureml.data.stored_procedure_parameter.StoredProcedureParameter": CLASS,
    "azureml.data.stored_procedure_parameter.StoredProcedureParameterType": CLASS,
    "azureml.mlflow.azureml_artifacts_builder": FUNCTION,
    "azureml.mlflow.azureml_store_builder": FUNCTION,
    "azureml.mlflow.get_portal_url": FUNCTION,
    "azureml.mlflow.register_model": FUNCTION,
    "azureml.pipeline.core.Module": CLASS,
    "azureml.pipeline.core.ModuleVersion": CLASS,
    "azureml.pipeline.core.ModuleVersionDescriptor": CLASS,
    "azureml.pipeline.core.PipelineDraft": CLASS,
    "azureml.pipeline.core.PipelineEndpoint": CLASS,
    "azureml.pipeline.core.PublishedPipeline": CLASS,
    "azureml.pipeline.core.Schedule": CLASS,
    "azureml.pipeline.core.ScheduleRecurrence": CLASS,
    "azureml.pipeline.core.TimeZone": CLASS,
    "azureml.pipeline.core.module_step_base.ModuleStepBase": CLASS,
    "azureml.pipeline.core.pipeline_endpoint.PipelineIdVersion": CLASS,
    "azureml.pipeline.core.pipeline_endpoint.PipelineVersion": CLASS,
    "azureml.pipeline.steps.AutoMLStep": CLASS,
    "azureml.pipeline.steps.AutoMLStepRun": CLASS,
    "azureml.pipeline.steps.DataTransferStep": CLASS,
    "azureml.pipeline.steps.ModuleStep": CLASS,
    "azureml.pipeline.steps.ParallelRunConfig": CLASS,
    "azureml.pipeline.steps.ParallelRunStep": CLASS,
    "azureml.pipeline.steps.RScriptStep": CLASS,
    "azureml.tensorboard.Tensorboard": CLASS,
    "azureml.tensorboard.export.export_to_tensorboard": FUNCTION,
    "azureml.widgets.ParallelRunStepDetails": CLASS,
    "azureml.widgets.RunDetails": CLASS,
}
