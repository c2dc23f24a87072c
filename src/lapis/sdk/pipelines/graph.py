"""A pipeline as nodes and edges: `pipeline.graph` and `pipeline_run.get_graph()`, to be looked at.

A node is a step or data from outside of the pipeline; an edge leads from an output of one node to an input of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, NoReturn

from lapis.domain.pipeline_moves import node_id
from lapis.errors import InvalidPipeline, NotThereYet
from lapis.sdk.pipelines.graph_ports import (
    DataSource,
    DataSourceDef,
    InputPort,
    InputPortDef,
    Module,
    ModuleDef,
    OutputPort,
    OutputPortDef,
    Param,
    ParamDef,
)

if TYPE_CHECKING:
    from lapis.sdk.pipelines.pipeline import Pipeline
    from lapis.sdk.pipelines.pipeline_run import PipelineRun

_BY_STEPS = "Build a Pipeline of steps, and submit that."


class Node:
    """A node with its ports. It is made by a graph."""

    def __init__(
        self, graph: Any, node_id: str, name: str | None = None, module: Any = None, module_builder: Any = None,
        datasource: Any = None, datasource_builder: Any = None, module_wiring: Any = None,
    ) -> None:  # fmt: skip
        self._graph, self._node_id, self._name = graph, node_id, name
        self._module, self._datasource = module, datasource
        definition = module.module_def if module is not None else None
        self._inputs = [InputPort(self, each) for each in (definition.input_port_defs if definition else [])]
        outputs = definition.output_port_defs if definition else []
        if datasource is not None:
            outputs = [datasource.datasource_def.output_port_def]
        self._outputs = [OutputPort(self, each) for each in outputs]
        self._params = [Param(each) for each in (definition.param_defs if definition else [])]
        self._after: list[Node] = []

    @property
    def node_id(self) -> str:
        return self._node_id

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def inputs(self) -> list[InputPort]:
        return self._inputs

    @property
    def outputs(self) -> list[OutputPort]:
        return self._outputs

    @property
    def params(self) -> dict[str, Param]:
        return {each.name: each for each in self._params}

    @property
    def input_dict(self) -> dict[str, InputPort]:
        return {each.name: each for each in self._inputs}

    @property
    def output_dict(self) -> dict[str, OutputPort]:
        return {each.name: each for each in self._outputs}

    @property
    def module_def(self) -> Any:
        return self._module.module_def if self._module is not None else None

    @property
    def datasource_def(self) -> Any:
        return self._datasource.datasource_def if self._datasource is not None else None

    def get_input(self, name: str) -> InputPort | None:
        return self.input_dict.get(name)

    def get_output(self, name: str) -> OutputPort | None:
        return self.output_dict.get(name)

    def get_param(self, name: str) -> Param | None:
        return self.params.get(name)

    def run_after(self, node: Node) -> None:
        self._after.append(node)

    def sequence(self, nodes: Iterable[Node]) -> None:
        before = self
        for node in nodes:
            node.run_after(before)
            before = node

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r} [{self._node_id}])"


class ModuleNode(Node):
    """A step."""

    def __init__(
        self, graph: Any, node_id: str, name: str | None = None, module: Any = None, module_builder: Any = None,
        module_wiring: Any = None, runconfig: Any = None, cloud_settings: Any = None, regenerate_outputs: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(graph, node_id, name, module, module_builder, module_wiring=module_wiring)


class DataSourceNode(Node):
    """Data from outside of the pipeline."""

    def __init__(
        self, graph: Any, node_id: str, name: str | None = None, datasource: Any = None, datasource_builder: Any = None,
        datapath_param_name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(graph, node_id, name, datasource=datasource, datasource_builder=datasource_builder)
        self.datapath_param_name = datapath_param_name


class Edge:
    def __init__(self, source_port: Any, dest_port: Any) -> None:
        self._source_port, self._dest_port = source_port, dest_port

    @property
    def source_port(self) -> Any:
        return self._source_port

    @property
    def dest_port(self) -> Any:
        return self._dest_port

    def __repr__(self) -> str:
        source, dest = self._source_port, self._dest_port
        return f"Edge({source.node.name}.{source.name} -> {dest.node.name}.{dest.name})"


class Graph:
    def __init__(self, name: str | None, context: Any) -> None:
        self._name, self._context = name, context
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        self._pipeline: Pipeline | None = None

    @property
    def nodes(self) -> list[Node]:
        return list(self._nodes.values())

    @property
    def module_nodes(self) -> list[ModuleNode]:
        return [node for node in self._nodes.values() if isinstance(node, ModuleNode)]

    @property
    def datasource_nodes(self) -> list[DataSourceNode]:
        return [node for node in self._nodes.values() if isinstance(node, DataSourceNode)]

    @property
    def node_dict(self) -> dict[str, Node]:
        return dict(self._nodes)

    @property
    def node_name_dict(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self._nodes.values():
            found.setdefault(str(node.name), []).append(node)
        return found

    @property
    def edges(self) -> list[Edge]:
        return list(self._edges)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the pipeline, with their defaults."""
        if self._pipeline is None:
            return {}
        return {each.name: each.default_value for each in self._pipeline._parameters()}

    def get_node(self, node_id: str) -> Node | None:
        return self._nodes.get(node_id)

    def connect(self, source_port: Any, dest_port: Any) -> Edge:
        edge = Edge(source_port, dest_port)
        self._edges.append(edge)
        dest_port._edge = edge
        return edge

    def delete_node(self, node_id: str) -> None:
        node = self._nodes.pop(node_id, None)
        if node is None:
            raise InvalidPipeline(f"The graph has no node {node_id!r}.")
        self._edges = [each for each in self._edges if node not in (each.source_port.node, each.dest_port.node)]

    def sequence(self, nodes: Iterable[Node]) -> None:
        first, *rest = nodes
        first.sequence(rest)

    def add_module_node(
        self, name: str, input_bindings: Any, output_bindings: Any = None, param_bindings: Any = None,
        module: Any = None, module_builder: Any = None, module_wiring: Any = None, runconfig: Any = None,
        cloud_settings: Any = None,
    ) -> ModuleNode:  # fmt: skip
        node = ModuleNode(self, f"{len(self._nodes):08x}", name, module)
        self._nodes[node.node_id] = node
        return node

    def add_datasource_node(
        self, name: str, datasource: Any = None, datasource_builder: Any = None, datapath_param_name: str | None = None
    ) -> DataSourceNode:
        node = DataSourceNode(self, f"{len(self._nodes):08x}", name, datasource, None, datapath_param_name)
        self._nodes[node.node_id] = node
        return node

    def _add(self, node: Any) -> Any:
        self._nodes[node.node_id] = node
        return node

    def validate(self) -> Any:
        return self._of_pipeline("validate").validate()

    def submit(
        self, pipeline_parameters: Any = None, continue_on_step_failure: bool = False, regenerate_outputs: bool = False,
        parent_run_id: str | None = None, **kwargs: Any,
    ) -> Any:  # fmt: skip
        return self._of_pipeline("submit").submit(
            kwargs.pop("experiment_name", None) or self._name or "pipeline", pipeline_parameters,
            continue_on_step_failure, regenerate_outputs, parent_run_id,
        )  # fmt: skip

    def finalize(self, dry_run: Any = None, regenerate_outputs: bool = False) -> None:
        raise NotThereYet("Graph.finalize", _BY_STEPS)

    def generate_yaml(self) -> NoReturn:
        raise NotThereYet("Graph.generate_yaml")

    def _of_pipeline(self, what: str) -> Pipeline:
        if self._pipeline is None:
            raise NotThereYet(f"Graph.{what} of a graph without steps", _BY_STEPS)
        return self._pipeline

    def __repr__(self) -> str:
        return f"Graph({len(self.module_nodes)} steps, {len(self._edges)} edges)"


def graph_of(pipeline: Pipeline) -> Graph:
    from lapis.sdk.pipelines import wiring

    made = Graph(pipeline.name, pipeline.workspace)
    made._pipeline = pipeline
    nodes: dict[int, Node] = {}
    for number, step in enumerate(pipeline._steps):
        node_key = node_id(step.name, number)
        outside = [each for each in step._inputs if wiring.joined(each) is None]
        inputs = [InputPortDef(each.name) for each in step._joined()]
        inputs += [InputPortDef(_name_of(each)) for each in outside]
        outputs = [OutputPortDef(getattr(each, "_output_name", None) or each.name) for each in step._written]
        params = [ParamDef(each.name, each.default_value) for each in step._parameters()]
        definition = ModuleDef(step.name, None, inputs, outputs, params, step_type=step.step_type,
                               allow_reuse=getattr(step, "_allow_reuse", True))  # fmt: skip
        module = Module(node_key, definition)
        node = nodes[id(step)] = made._add(ModuleNode(made, node_key, step.name, module))
        for each in outside:
            name = _name_of(each)
            source = made.add_datasource_node(name, DataSource(name, DataSourceDef(name)))
            made.connect(source.outputs[0], node.input_dict[name])
    for step in pipeline._steps:
        node = nodes[id(step)]
        for wanted in step._joined():
            writer = nodes[id(wanted.origin.step)]
            name = getattr(wanted.source, "_output_name", None) or wanted.source.name
            made.connect(writer.output_dict[name], node.input_dict[wanted.name])
        for earlier in step.run_after_steps:
            node.run_after(nodes[id(earlier)])
    return made


def graph_of_run(run: PipelineRun) -> Graph:
    made = Graph(run.experiment.name, run.experiment.workspace)
    rows = run._steps()["steps"]
    nodes = []
    for row in rows:
        inputs = [InputPortDef(each["name"]) for each in row["inputs"]]
        outputs = [OutputPortDef(each["name"], each["datastore"], each["mode"]) for each in row["outputs"]]
        definition = ModuleDef(row["name"], None, inputs, outputs, step_type=row["type"])
        nodes.append(made._add(ModuleNode(made, row["node_id"], row["name"], Module(row["node_id"], definition))))
    for row, node in zip(rows, nodes):
        for each in row["inputs"]:
            made.connect(nodes[each["step"]].output_dict[each["output"]], node.input_dict[each["name"]])
        for number in row["needs"]:
            node.run_after(nodes[number])
    return made


def _name_of(value: Any) -> str:
    if isinstance(value, tuple):
        value = value[0]
    return str(getattr(value, "name", None) or getattr(value, "data_reference_name", None) or value)
