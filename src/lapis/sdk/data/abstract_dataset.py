"""What file and table datasets have in common: a definition, and a name and version once registered."""

from __future__ import annotations

from lapis.domain import data
from lapis.domain import run as run_rules
from lapis.errors import UserErrorException
from lapis.files import layout, path_columns
from lapis.later import TYPE_CHECKING
from lapis.sdk.data import definition_names

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, Iterable, Mapping, Sequence, TypeVar

    from lapis.sdk.data.consumption import DatasetConsumptionConfig
    from lapis.sdk.data.file_dataset import FileDataset, FileDatasetFactory
    from lapis.sdk.data.tabular_dataset import TabularDataset
    from lapis.sdk.data.tabular_factory import TabularDatasetFactory
    from lapis.sdk.workspace.workspace import Workspace

    _Self = TypeVar("_Self", bound="AbstractDataset")


class AbstractDataset:
    """A definition is never changed: every step gives a new dataset."""

    File: type[FileDatasetFactory]  # the factories, set where they are defined
    Tabular: type[TabularDatasetFactory]

    def __init__(self) -> None:
        self._definition: dict[str, Any] = {}
        self._workspace: Workspace | None = None
        self._registration: dict[str, Any] | None = None

    @classmethod
    def _of(cls: type[_Self], definition: Mapping[str, Any], workspace: Workspace | None) -> _Self:
        import copy

        made = cls.__new__(cls)
        AbstractDataset.__init__(made)
        made._definition = copy.deepcopy(dict(definition))
        made._workspace = workspace
        return made

    def _with_step(self: _Self, **step: Any) -> _Self:
        definition = dict(self._definition, steps=[*self._definition.get("steps", []), step])
        return type(self)._of(definition, self._workspace)

    # -- steps, the same for files and for rows

    _unit = "files"  # what a dataset is made of

    def skip(self: _Self, count: int) -> _Self:
        return self._with_step(op="skip", count=self._count("skip", count))

    def take(self: _Self, count: int) -> _Self:
        return self._with_step(op="take", count=self._count("take", count))

    def take_sample(self: _Self, probability: float, seed: int | None = None) -> _Self:
        """Each with that chance; the same ones again for the same seed."""
        return self._with_step(
            op="sample", probability=checked_part("take_sample", probability), seed=checked_seed(seed)
        )

    def random_split(self: _Self, percentage: float, seed: int | None = None) -> tuple[_Self, _Self]:
        """Two datasets that share nothing; the first has about that part of it."""
        part, chosen = checked_part("random_split", percentage), checked_seed(seed)
        first, second = (self._with_step(op="split", percentage=part, seed=chosen, part=number) for number in (0, 1))
        return first, second

    def _count(self, call: str, count: Any) -> int:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise UserErrorException(f"{call}() takes a number of {self._unit}, not {count!r}.")
        return count

    # -- registered

    @property
    def id(self) -> str | None:
        return self._fact("id")  # type: ignore[no-any-return]

    @property
    def name(self) -> str | None:
        return self._fact("name")  # type: ignore[no-any-return]

    @property
    def version(self) -> int | None:
        return self._fact("version")  # type: ignore[no-any-return]

    @property
    def description(self) -> str | None:
        return self._fact("description")  # type: ignore[no-any-return]

    @property
    def tags(self) -> dict[str, Any] | None:
        found = self._fact("tags")
        return None if found is None else dict(found)

    def _fact(self, key: str) -> Any:
        return None if self._registration is None else self._registration.get(key)

    def register(
        self: _Self,
        workspace: Workspace,
        name: str,
        description: str | None = None,
        tags: Mapping[str, Any] | None = None,
        create_new_version: bool = False,
    ) -> _Self:
        """Keep the definition under a name. What it stands for now is written down with it."""
        from typing import cast

        _checked(workspace)
        body = {
            "name": data.check_dataset_name(name),
            "definition": self._definition,
            "files": self._recorded(workspace),
            "description": run_rules.check_text("description", description),
            "tags": run_rules.check_labels("tags", tags or {}),
            "create_new_version": bool(create_new_version),
        }
        made = from_registration(workspace, workspace._client.call("POST", workspace._base + "/datasets", body))
        return cast("_Self", made)

    def _recorded(self, workspace: Workspace) -> list[dict[str, Any]]:
        raise NotImplementedError

    def _saved_in(self, workspace: Workspace) -> str:
        """Its id. One that was never registered is kept without a name, so that a run can say what it read."""
        if self.id is None:
            body = {"name": None, "definition": self._definition}
            return str(workspace._client.call("POST", workspace._base + "/datasets", body)["id"])
        return self.id

    def _belongs_to(self, workspace: Workspace) -> None:
        if any("datastore" in source for source in self._definition["sources"]):
            if self._workspace is not None and self._workspace != workspace:
                raise UserErrorException(
                    f"This dataset lies in datastores of workspace '{self._workspace.name}' and cannot be registered "
                    f"in '{workspace.name}'."
                )
        self._workspace = self._workspace or workspace

    def update(self: _Self, description: str | None = None, tags: Mapping[str, Any] | None = None) -> _Self:
        """Change the description, and set tags."""
        changes: dict[str, Any] = {}
        if description is not None:
            changes["description"] = run_rules.check_text("description", description)
        if tags is not None:
            changes["tags"] = run_rules.check_labels("tags", tags)
        return self._change(changes)

    def add_tags(self: _Self, tags: Mapping[str, Any] | None = None) -> _Self:
        return self._change({"tags": run_rules.check_labels("tags", tags or {})})

    def remove_tags(self: _Self, tags: str | Iterable[str] | None = None) -> _Self:
        return self._change({"remove_tags": [tags] if isinstance(tags, str) else list(tags or [])})

    def _change(self: _Self, changes: Mapping[str, Any]) -> _Self:
        workspace = self._registered("changed")
        path = f"{workspace._base}/datasets/{self.id}"
        self._registration = workspace._client.call("PATCH", path, dict(changes))
        return self

    def unregister_all_versions(self) -> None:
        """Forget the name with all its versions. The data stays where it is."""
        workspace = self._registered("unregistered")
        workspace._client.call("DELETE", workspace._base + "/dataset", query={"name": self.name})
        self._registration = None

    def _registered(self, what: str) -> Workspace:
        if self.name is None or self._workspace is None:
            raise UserErrorException(f"Only a registered dataset can be {what}. register() keeps it under a name.")
        return self._workspace

    @staticmethod
    def get_by_name(
        workspace: Workspace, name: str, version: int | str | None = "latest", **kwargs: Any
    ) -> FileDataset | TabularDataset:
        """A registered dataset; the newest version, or the one asked for."""
        _checked(workspace)
        query = {
            "name": data.check_dataset_name(name),
            "version": None if version in (None, "latest") else _number(version),
        }
        return from_registration(workspace, workspace._client.call("GET", workspace._base + "/dataset", query=query))

    @staticmethod
    def get_by_id(workspace: Workspace, id: str, **kwargs: Any) -> FileDataset | TabularDataset:
        import re

        _checked(workspace)
        if not isinstance(id, str) or not re.fullmatch(r"[\w-]{1,64}", id, re.ASCII):
            raise UserErrorException(f"{id!r} is not a dataset id. dataset.id gives one.")
        return from_registration(workspace, workspace._client.call("GET", f"{workspace._base}/datasets/{id}"))

    @staticmethod
    def get_all(workspace: Workspace) -> dict[str, FileDataset | TabularDataset]:
        """The newest version of each registered dataset, by name."""
        _checked(workspace)
        found = workspace._client.call("GET", workspace._base + "/datasets")["datasets"]
        return {view["name"]: from_registration(workspace, view) for view in found}

    # -- in a run

    def as_named_input(self, name: str) -> DatasetConsumptionConfig:
        """How a run gets it: under a name, which becomes an environment variable."""
        from lapis.sdk.data.consumption import DatasetConsumptionConfig

        return DatasetConsumptionConfig(name, self)

    # -- partitions

    @property
    def partition_keys(self) -> list[str]:
        """The names that the partition format gives to parts of the files' paths."""
        return path_columns.keys(self._partition_format)

    def get_partition_key_values(self, partition_keys: str | Sequence[str] | None = None) -> list[dict[str, Any]]:
        """Every combination of values that there are files for."""
        chosen = self.partition_keys if partition_keys is None else _keys(partition_keys)
        unknown = [key for key in chosen if key not in self.partition_keys]
        if unknown:
            known = ", ".join(self.partition_keys) or "none"
            raise UserErrorException(f"'{unknown[0]}' is no partition key of this dataset. Partition keys: {known}.")
        found: dict[tuple[Any, ...], None] = {}
        for file in self._files() if chosen else ():
            values = path_columns.values(file, False, self._partition_format)
            found[tuple(values[key] for key in chosen)] = None
        return [dict(zip(chosen, values)) for values in found]

    @property
    def _partition_format(self) -> str | None:
        return self._definition.get("partition_format")

    # -- what it stands for

    @property
    def data_changed_time(self) -> datetime | None:
        """When the newest of its files was changed; None where one of them does not say."""
        from datetime import datetime, timezone

        times = [file.modified for file in layout.describe_all(self._files())]
        known = [time for time in times if time is not None]
        return datetime.fromtimestamp(max(known), timezone.utc) if known and len(known) == len(times) else None

    def _files(self) -> list[data.File]:
        raise NotImplementedError

    def __repr__(self) -> str:
        """JSON, under the keys of SDK v1: scripts parse it."""
        import json

        facts: dict[str, Any] = {
            "source": self._sources_in_words(),
            "definition": definition_names.step_names(self._definition),
        }
        if self._registration is not None:
            about = ("id", "name", "version", "description", "tags")
            facts["registration"] = {key: self._fact(key) for key in about if self._fact(key) is not None}
            facts["registration"]["workspace"] = repr(self._workspace)
        return json.dumps(facts, indent=2)

    def _sources_in_words(self) -> list[str]:
        return [_shown(source) for source in self._definition.get("sources", [])]

    def __str__(self) -> str:
        return f"{type(self).__name__}\n{self!r}"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._definition == self._definition

    __hash__ = object.__hash__


def from_registration(workspace: Workspace, view: Mapping[str, Any]) -> FileDataset | TabularDataset:
    from lapis.sdk.data.file_dataset import FileDataset
    from lapis.sdk.data.tabular_dataset import TabularDataset

    classes: dict[str, type[FileDataset | TabularDataset]] = {"file": FileDataset, "tabular": TabularDataset}
    kind = view["definition"].get("type")
    if kind not in classes:
        raise UserErrorException(
            f"Dataset '{view['name'] or view['id']}' is a {kind!r}, which this release of Lapis cannot read."
        )
    made = classes[kind]._of(view["definition"], workspace)
    made._registration = dict(view)
    return made


def _checked(workspace: Any) -> None:
    if not hasattr(workspace, "subscription_id"):
        raise UserErrorException(f"workspace must be a Workspace, not {type(workspace).__name__}.")


def _number(version: Any) -> int:
    try:
        return int(version)
    except (TypeError, ValueError):
        raise UserErrorException(f"version must be a number or 'latest', not {version!r}.") from None


def _shown(source: Mapping[str, Any]) -> str:
    if "url" in source:
        return data.shown_url(source["url"])
    if "query" in source:
        return f"{source['datastore']}: {source['query']}"
    if source.get("datastore"):
        return str((source["datastore"], source.get("path") or ""))
    return str(source.get("path"))


def _keys(partition_keys: Any) -> list[str]:
    keys = [partition_keys] if isinstance(partition_keys, str) else partition_keys
    if not isinstance(keys, (list, tuple)) or not all(isinstance(key, str) for key in keys):
        raise UserErrorException(f"partition_keys is a list of names, not {partition_keys!r}.")
    return list(keys)


def checked_part(call: str, part: Any) -> float:
    if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0 <= part <= 1:
        raise UserErrorException(f"{call}() takes a part between 0 and 1, not {part!r}.")
    return float(part)


def checked_seed(seed: Any) -> int:
    """A seed that is not given is drawn now, so that the dataset stays the same from here on."""
    if seed is None:
        import random

        return random.SystemRandom().getrandbits(31)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UserErrorException(f"seed must be a whole number, not {seed!r}.")
    return seed
