"""A pipeline as a graph."""

from azureml.data.stored_procedure_parameter import StoredProcedureParameter as StoredProcedureParameter
from azureml.data.stored_procedure_parameter import (
    StoredProcedureParameterType as StoredProcedureParameterType,
)
from lapis.sdk.base.missing_names import stand_in as _stand_in

DataSource = _stand_in("azureml.pipeline.core.graph.DataSource")
DataSourceDef = _stand_in("azureml.pipeline.core.graph.DataSourceDef")
DataSourceNode = _stand_in("azureml.pipeline.core.graph.DataSourceNode")
DataType = _stand_in("azureml.pipeline.core.graph.DataType")
Edge = _stand_in("azureml.pipeline.core.graph.Edge")
Graph = _stand_in("azureml.pipeline.core.graph.Graph")
InputPort = _stand_in("azureml.pipeline.core.graph.InputPort")
InputPortBinding = _stand_in("azureml.pipeline.core.InputPortBinding")
InputPortDef = _stand_in("azureml.pipeline.core.graph.InputPortDef")
Module = _stand_in("azureml.pipeline.core.graph.Module")
ModuleDef = _stand_in("azureml.pipeline.core.graph.ModuleDef")
ModuleNode = _stand_in("azureml.pipeline.core.graph.ModuleNode")
Node = _stand_in("azureml.pipeline.core.graph.Node")
OutputPort = _stand_in("azureml.pipeline.core.graph.OutputPort")
OutputPortBinding = _stand_in("azureml.pipeline.core.OutputPortBinding")
OutputPortDef = _stand_in("azureml.pipeline.core.graph.OutputPortDef")
Param = _stand_in("azureml.pipeline.core.graph.Param")
ParamDef = _stand_in("azureml.pipeline.core.graph.ParamDef")
PipelineDataset = _stand_in("azureml.pipeline.core.PipelineDataset")
PipelineParameter = _stand_in("azureml.pipeline.core.PipelineParameter")
PortDataReference = _stand_in("azureml.pipeline.core.PortDataReference")
PublishedPipeline = _stand_in("azureml.pipeline.core.PublishedPipeline")
TrainingOutput = _stand_in("azureml.pipeline.core.TrainingOutput")
