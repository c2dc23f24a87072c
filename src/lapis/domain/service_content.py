"""What a service serves: which models, with which code or runtime, in which environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping, TypeVar

from lapis.domain.job import NoCode, WantedEnvironment

T = TypeVar("T")


@dataclass(frozen=True)
class ModelVersion:
    """A version of a model, as it was when the service was deployed."""

    id: str  # name:version
    asset_id: str
    name: str
    version: int
    framework: str | None
    framework_version: str | None

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ModelVersion:
        return cls(
            id=body["id"],
            asset_id=body["asset_id"],
            name=body["name"],
            version=body["version"],
            framework=body.get("framework"),
            framework_version=body.get("framework_version"),
        )


@dataclass(frozen=True)
class Origin:
    """Where the code was when it was sent."""

    entry_script: str
    source_directory: str | None
    cwd: str
    beside: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return dict(self.__dict__, beside=list(self.beside))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Origin:
        return cls(
            entry_script=body["entry_script"],
            source_directory=body.get("source_directory"),
            cwd=body["cwd"],
            beside=tuple(body.get("beside") or ()),
        )


@dataclass(frozen=True)
class Content:
    """Which models, with which code or runtime, in which environment."""

    models: tuple[ModelVersion, ...]
    snapshot_id: str | None
    entry_script: str | None  # its path in the snapshot; None: the server knows how to serve such a model
    folder: str | None  # what the source folder is called: scripts open paths that begin with it
    python: str | None
    environment: WantedEnvironment | None
    environment_variables: Mapping[str, str]
    definition: Mapping[str, Any] | None  # of the environment, for showing
    notices: tuple[str, ...]
    description: str | None
    no_code: NoCode | None
    origin: Origin | None
    image: str | None  # the image of 2019's kind that it came from

    def to_json(self) -> dict[str, Any]:
        return {
            "models": [model.to_json() for model in self.models],
            "snapshot_id": self.snapshot_id,
            "entry_script": self.entry_script,
            "folder": self.folder,
            "python": self.python,
            "environment": _written(self.environment),
            "environment_variables": dict(self.environment_variables),
            "definition": None if self.definition is None else dict(self.definition),
            "notices": list(self.notices),
            "description": self.description,
            "no_code": _written(self.no_code),
            "origin": _written(self.origin),
            "image": self.image,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Content:
        return cls(
            models=tuple(ModelVersion.from_json(model) for model in body["models"]),
            snapshot_id=body.get("snapshot_id"),
            entry_script=body.get("entry_script"),
            folder=body.get("folder"),
            python=body.get("python"),
            environment=_read(WantedEnvironment.from_json, body.get("environment")),
            environment_variables=body.get("environment_variables") or {},
            definition=body.get("definition"),
            notices=tuple(body.get("notices") or ()),
            description=body.get("description"),
            no_code=_read(NoCode.from_json, body.get("no_code")),
            origin=_read(Origin.from_json, body.get("origin")),
            image=body.get("image"),
        )


def _written(part: Any) -> dict[str, Any] | None:
    written: dict[str, Any] | None = None if part is None else part.to_json()
    return written


def _read(how: Callable[[Mapping[str, Any]], T], body: Mapping[str, Any] | None) -> T | None:
    return None if body is None else how(body)
