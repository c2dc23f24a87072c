"""A pipeline as a graph."""

from azureml.data.stored_procedure_parameter import StoredProcedureParameter as StoredProcedureParameter
from azureml.data.stored_procedure_parameter import (
    StoredProcedureParameterType as StoredProcedureParameterType,
)
from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.pipelines.bindings import InputPortBinding as InputPortBinding
from lapis.sdk.pipelines.bindings import OutputPortBinding as OutputPortBinding
from lapis.sdk.pipelines.bindings import PipelineDataset as PipelineDataset
from lapis.sdk.pipelines.bindings import TrainingOutput as TrainingOutput
from lapis.sdk.pipelines.graph import DataSourceNode as DataSourceNode
from lapis.sdk.pipelines.graph import Edge as Edge
from lapis.sdk.pipelines.graph import Graph as Graph
from lapis.sdk.pipelines.graph import ModuleNode as ModuleNode
from lapis.sdk.pipelines.graph import Node as Node
from lapis.sdk.pipelines.graph_ports import DataSource as DataSource
from lapis.sdk.pipelines.graph_ports import DataSourceDef as DataSourceDef
from lapis.sdk.pipelines.graph_ports import DataType as DataType
from lapis.sdk.pipelines.graph_ports import InputPort as InputPort
from lapis.sdk.pipelines.graph_ports import InputPortDef as InputPortDef
from lapis.sdk.pipelines.graph_ports import Module as Module
from lapis.sdk.pipelines.graph_ports import ModuleDef as ModuleDef
from lapis.sdk.pipelines.graph_ports import OutputPort as OutputPort
from lapis.sdk.pipelines.graph_ports import OutputPortDef as OutputPortDef
from lapis.sdk.pipelines.graph_ports import Param as Param
from lapis.sdk.pipelines.graph_ports import ParamDef as ParamDef
from lapis.sdk.pipelines.parameters import PipelineParameter as PipelineParameter
from lapis.sdk.pipelines.step_run import PortDataReference as PortDataReference

PublishedPipeline = _stand_in("azureml.pipeline.core.PublishedPipeline")
