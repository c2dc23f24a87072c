"""Compute targets, each by its kind."""

from azureml.core.compute.adla import AdlaCompute as AdlaCompute
from azureml.core.compute.aks import AksCompute as AksCompute
from azureml.core.compute.amlcompute import AmlCompute as AmlCompute
from azureml.core.compute.batch import BatchCompute as BatchCompute
from azureml.core.compute.compute import ComputeTarget as ComputeTarget
from azureml.core.compute.computeinstance import ComputeInstance as ComputeInstance
from azureml.core.compute.databricks import DatabricksCompute as DatabricksCompute
from azureml.core.compute.datafactory import DataFactoryCompute as DataFactoryCompute
from azureml.core.compute.dsvm import DsvmCompute as DsvmCompute
from azureml.core.compute.hdinsight import HDInsightCompute as HDInsightCompute
from azureml.core.compute.kubernetescompute import KubernetesCompute as KubernetesCompute
from azureml.core.compute.kusto import KustoCompute as KustoCompute
from azureml.core.compute.remote import RemoteCompute as RemoteCompute
from azureml.core.compute.synapse import SynapseCompute as SynapseCompute
from lapis.sdk.base.names import on_demand as _on_demand

__getattr__, __dir__ = _on_demand(__name__, {})
