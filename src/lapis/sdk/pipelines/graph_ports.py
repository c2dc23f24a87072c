"""What the nodes of a graph are made of: definitions of steps and data, their ports and parameters. All values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lapis.errors import NotThereYet


class ParamDef:
    def __init__(
        self, name: str, default_value: Any = None, is_metadata_param: bool = False, is_optional: bool = False,
        set_env_var: bool = False, calculate_hash: bool = True, env_var_override: Any = None,
    ) -> None:  # fmt: skip
        self.name, self.default_value = name, default_value
        self.is_metadata_param, self.is_optional = is_metadata_param, is_optional
        self.set_env_var, self.calculate_hash, self.env_var_override = set_env_var, calculate_hash, env_var_override


class Param:
    def __init__(self, param_def: ParamDef) -> None:
        self.param_def, self.name = param_def, param_def.name
        self.value, self.set_var = param_def.default_value, param_def.set_env_var

    def get_value(self) -> Any:
        return self.value

    def set_value(self, param_value: Any) -> None:
        self.value = param_value


class InputPortDef:
    def __init__(
        self, name: str, data_types: Any = None, default_datastore_mode: str | None = None,
        default_path_on_compute: str | None = None, is_optional: bool = False, default_overwrite: Any = None,
        default_data_reference_name: str | None = None, is_resource: bool = False, label: str | None = None,
        additional_transformations: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        self._name, self._data_types = name, list(data_types or ["AnyFile", "AnyDirectory"])
        self._mode, self._path, self._optional = default_datastore_mode, default_path_on_compute, is_optional
        self._overwrite, self._reference = default_overwrite, default_data_reference_name or name
        self._resource, self._label, self._transformations = is_resource, label or name, additional_transformations

    @property
    def name(self) -> str:
        return self._name

    @property
    def data_types(self) -> list[str]:
        return self._data_types

    @property
    def default_datastore_mode(self) -> str | None:
        return self._mode

    @property
    def default_path_on_compute(self) -> str | None:
        return self._path

    @property
    def is_optional(self) -> bool:
        return self._optional

    @property
    def default_overwrite(self) -> Any:
        return self._overwrite

    @property
    def default_data_reference_name(self) -> str:
        return self._reference

    @property
    def is_resource(self) -> bool:
        return self._resource

    @property
    def label(self) -> str:
        return self._label

    @property
    def additional_transformations(self) -> Any:
        return self._transformations


class OutputPortDef:
    def __init__(
        self, name: str, default_datastore_name: str | None = None, default_datastore_mode: str | None = None,
        default_path_on_compute: str | None = None, is_directory: bool = False, data_type: str | None = None,
        default_overwrite: Any = None, training_output: Any = None, label: str | None = None,
    ) -> None:  # fmt: skip
        self._name, self._store, self._mode = name, default_datastore_name, default_datastore_mode
        self._path, self._directory = default_path_on_compute, is_directory
        self._data_type = data_type or ("AnyDirectory" if is_directory else "AnyFile")
        self._overwrite, self._training, self._label = default_overwrite, training_output, label or name

    @property
    def name(self) -> str:
        return self._name

    @property
    def default_datastore_name(self) -> str | None:
        return self._store

    @property
    def default_datastore_mode(self) -> str | None:
        return self._mode

    @property
    def default_path_on_compute(self) -> str | None:
        return self._path

    @property
    def is_directory(self) -> bool:
        return self._directory

    @property
    def data_type(self) -> str:
        return self._data_type

    @property
    def default_overwrite(self) -> Any:
        return self._overwrite

    @property
    def training_output(self) -> Any:
        return self._training

    @property
    def label(self) -> str:
        return self._label


class InputPort:
    def __init__(self, node: Any, input_port_def: InputPortDef) -> None:
        self._node, self._def = node, input_port_def
        self._edge: Any = None

    @property
    def node(self) -> Any:
        return self._node

    @property
    def name(self) -> str:
        return self._def.name

    @property
    def input_port_def(self) -> InputPortDef:
        return self._def

    @property
    def incoming_edge(self) -> Any:
        return self._edge

    @property
    def bind_mode(self) -> str | None:
        return self._def.default_datastore_mode

    @property
    def data_types(self) -> list[str]:
        return self._def.data_types

    @property
    def data_reference_name(self) -> str:
        return self._def.default_data_reference_name

    @property
    def overwrite(self) -> Any:
        return self._def.default_overwrite

    @property
    def path_on_compute(self) -> str | None:
        return self._def.default_path_on_compute

    @property
    def additional_transformations(self) -> Any:
        return self._def.additional_transformations

    def connect(self, source_port: Any) -> Any:
        return self._node._graph.connect(source_port, self)

    def disconnect(self) -> None:
        self._node._graph._edges = [each for each in self._node._graph._edges if each is not self._edge]
        self._edge = None


class OutputPort:
    def __init__(self, node: Any, output_port_def: OutputPortDef) -> None:
        self._node, self._def = node, output_port_def

    @property
    def node(self) -> Any:
        return self._node

    @property
    def name(self) -> str:
        return self._def.name

    @property
    def datastore_name(self) -> str | None:
        return self._def.default_datastore_name

    @property
    def bind_mode(self) -> str | None:
        return self._def.default_datastore_mode

    @property
    def data_type(self) -> str:
        return self._def.data_type

    @property
    def overwrite(self) -> Any:
        return self._def.default_overwrite

    @property
    def path_on_compute(self) -> str | None:
        return self._def.default_path_on_compute

    @property
    def pipeline_output_name(self) -> str | None:
        return None

    @property
    def dataset_registration(self) -> Any:
        return None

    @property
    def dataset_output(self) -> Any:
        return None

    def connect(self, dest_port: Any) -> Any:
        return self._node._graph.connect(self, dest_port)


class ModuleDef:
    fake_input_prefix = "_run_after_input_"
    fake_output_name = "_run_after_output"

    def __init__(
        self, name: str, description: str | None = None, input_port_defs: Any = None, output_port_defs: Any = None,
        param_defs: Any = None, module_execution_type: str | None = None, create_sequencing_ports: bool = True,
        allow_reuse: bool = True, version: str | None = None, module_type: str | None = None,
        step_type: str | None = None, arguments: Any = None, runconfig: Any = None, cloud_settings: Any = None,
    ) -> None:  # fmt: skip
        self._name, self._description, self._execution_type = name, description, module_execution_type
        self._inputs, self._outputs = list(input_port_defs or []), list(output_port_defs or [])
        self._params, self._allow_reuse, self._version = list(param_defs or []), allow_reuse, version
        self._module_type, self._step_type, self._runconfig = module_type, step_type, runconfig
        self._cloud_settings = cloud_settings

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str | None:
        return self._description

    @property
    def input_port_defs(self) -> list[InputPortDef]:
        return self._inputs

    @property
    def output_port_defs(self) -> list[OutputPortDef]:
        return self._outputs

    @property
    def param_defs(self) -> list[ParamDef]:
        return self._params

    @property
    def allow_reuse(self) -> bool:
        return self._allow_reuse

    @property
    def module_execution_type(self) -> str | None:
        return self._execution_type

    @property
    def module_type(self) -> str | None:
        return self._module_type

    @property
    def step_type(self) -> str | None:
        return self._step_type

    @property
    def runconfig(self) -> Any:
        return self._runconfig

    @property
    def cloud_settings(self) -> Any:
        return self._cloud_settings

    def add_fake_sequencing_input_port(self) -> None:
        raise NotThereYet("ModuleDef.add_fake_sequencing_input_port", "step.run_after(other) says what comes first.")

    def calculate_hash(self) -> str:
        names = [[each.name for each in part] for part in (self._inputs, self._outputs, self._params)]
        return _hash([self._name, names, self._step_type, self._version])


class Module:
    """A step's definition, under an id."""

    def __init__(
        self,
        module_id: str,
        module_def: ModuleDef | None = None,
        module_version: Any = None,
        default_version: Any = None,
    ) -> None:
        self.id, self.module_def, self.module_version = module_id, module_def, module_version


class DataSourceDef:
    def __init__(
        self, name: str, description: str | None = None, data_type_id: str | None = None,
        datastore_name: str | None = None, path_on_datastore: str | None = None, sql_table: Any = None,
        sql_query: Any = None, sql_stored_procedure: Any = None, sql_stored_procedure_params: Any = None,
        pipeline_dataset: Any = None,
    ) -> None:  # fmt: skip
        self._name, self._description, self._data_type_id = name, description, data_type_id
        self.datastore_name, self.path_on_datastore = datastore_name, path_on_datastore
        self.sql_table, self.sql_query = sql_table, sql_query
        self.sql_stored_procedure, self.sql_stored_procedure_params = sql_stored_procedure, sql_stored_procedure_params
        self.pipeline_dataset = pipeline_dataset

    @staticmethod
    def create_from_data_reference(data_reference: Any) -> DataSourceDef:
        return DataSourceDef(
            data_reference.data_reference_name, datastore_name=data_reference.datastore.name,
            path_on_datastore=data_reference.path_on_datastore,
        )  # fmt: skip

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str | None:
        return self._description

    @property
    def data_type_id(self) -> str | None:
        return self._data_type_id

    @property
    def output_port_def(self) -> OutputPortDef:
        return OutputPortDef("data", self.datastore_name)

    def calculate_hash(self) -> str:
        return _hash([self._name, self.datastore_name, self.path_on_datastore])


class DataSource:
    DATASOURCE_PORT_NAME = "data"

    def __init__(self, datasource_id: str, datasource_def: DataSourceDef) -> None:
        self.id, self.datasource_def = datasource_id, datasource_def


class DataType:
    """The kind of what flows along an edge. Here all of it is files and folders."""

    def __init__(
        self, workspace: Any, id: str, name: str, description: str, is_directory: bool, parent_datatype_ids: Any
    ) -> None:
        self._id, self._name, self._description = id, name, description
        self._is_directory, self._parents = is_directory, list(parent_datatype_ids or [])

    @staticmethod
    def create_data_type(
        workspace: Any, name: str, description: str, is_directory: bool, parent_datatypes: Any = None
    ) -> DataType:
        raise NotThereYet("DataType.create_data_type", "What steps pass on is a file or a folder.")

    @staticmethod
    def list_data_types(workspace: Any) -> list[DataType]:
        return [
            DataType(workspace, "AnyFile", "AnyFile", "A file", False, []),
            DataType(workspace, "AnyDirectory", "AnyDirectory", "A folder", True, []),
        ]

    @property
    def id(self) -> str:
        return self._id

    @property
    def name(self) -> str:
        return self._name

    @property
    def description(self) -> str:
        return self._description

    @property
    def is_directory(self) -> bool:
        return self._is_directory

    @property
    def parent_datatype_ids(self) -> list[str]:
        return self._parents

    def update(self, new_description: str | None = None, new_parent_datatypes: Any = None) -> None:
        raise NotThereYet("DataType.update")


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()
