"""What is asked for when models are deployed: a new service, a change of one. Read strictly: it comes from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from lapis.domain.fields import Fields
from lapis.domain.job import WantedEnvironment
from lapis.domain.service_content import Origin
from lapis.domain.service_settings import KINDS, NO_KEYS, Keys, ServiceSettings

_MODELS = 1000
_NAME = 256  # characters of a name or an id


@dataclass(frozen=True)
class NewContent:
    """What is to be served; models are named by name:version, or by a name for their newest version."""

    models: tuple[str, ...] = ()
    snapshot_id: str | None = None
    entry_script: str | None = None  # its path in the snapshot; None: the server knows how to serve such a model
    folder: str | None = None  # what the source folder is called
    python: str | None = None
    environment: WantedEnvironment | None = None  # where packages are to be installed
    environment_variables: Mapping[str, str] = field(default_factory=dict)
    definition: Mapping[str, Any] | None = None  # of the environment, for showing
    notices: tuple[str, ...] = ()
    description: str | None = None
    origin: Origin | None = None

    @classmethod
    def from_json(cls, body: Any) -> NewContent:
        with Fields(body, "What is to be served") as fields:
            return cls(
                models=fields.texts("models", _MODELS),
                snapshot_id=fields.text_or_none("snapshot_id", _NAME),
                entry_script=fields.text_or_none("entry_script"),
                folder=fields.text_or_none("folder"),
                python=fields.text_or_none("python"),
                environment=fields.part("environment", _environment),
                environment_variables=fields.texts_by_name("environment_variables"),
                definition=fields.document("definition"),
                notices=fields.texts("notices"),
                description=fields.text_or_none("description"),
                origin=fields.part("origin", _origin),
            )


@dataclass(frozen=True)
class NewCode:
    """Another snapshot, entry script and folder, all else the same."""

    snapshot_id: str | None
    entry_script: str | None
    folder: str | None

    @classmethod
    def from_json(cls, body: Any) -> NewCode:
        with Fields(body, "The code of a service") as fields:
            return cls(
                snapshot_id=fields.text_or_none("snapshot_id", _NAME),
                entry_script=fields.text_or_none("entry_script"),
                folder=fields.text_or_none("folder"),
            )


@dataclass(frozen=True)
class NewService:
    """Served is what `content` says, or an image, or the same as another service."""

    name: str
    kind: str
    content: NewContent | None = None
    image: str | None = None  # name:version
    like: str | None = None  # the name of a service
    settings: ServiceSettings = ServiceSettings()
    keys: Keys = field(default=NO_KEYS, repr=False)
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    target: str | None = None
    version: str = ""  # the first one of an endpoint
    overwrite: bool = False
    created_by: str | None = None

    @classmethod
    def from_json(cls, body: Any) -> NewService:
        with Fields(body, "A new service") as fields:
            return cls(
                name=fields.text("name", _NAME),
                kind=fields.one_of("kind", KINDS),
                content=fields.part("content", NewContent.from_json),
                image=fields.text_or_none("image", _NAME),
                like=fields.text_or_none("like", _NAME),
                settings=ServiceSettings.asked(fields.document("settings") or {}),
                keys=fields.part("keys", _keys) or NO_KEYS,
                description=fields.text_or_none("description"),
                tags=fields.labels("tags"),
                properties=fields.texts_by_name("properties"),
                target=fields.text_or_none("target", _NAME),
                version=fields.text_or_none("version", _NAME) or "",
                overwrite=fields.flag("overwrite"),
                created_by=fields.text_or_none("created_by"),
            )


@dataclass(frozen=True)
class ServiceChange:
    """Of a service, or of a version of an endpoint: what is given changes, the rest stays."""

    content: NewContent | None = None
    models: tuple[str, ...] | None = None  # others with the same code
    image: str | None = None
    settings: ServiceSettings = ServiceSettings()
    description: str | None = None
    tags: Mapping[str, str | None] | None = None  # in place of those that there are
    add_tags: Mapping[str, str | None] = field(default_factory=dict)
    remove_tags: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    is_default: bool | None = None
    is_control: bool | None = None
    code: NewCode | None = None
    reload: bool = False  # the same again

    @classmethod
    def from_json(cls, body: Any) -> ServiceChange:
        with Fields(body, "A change of a service") as fields:
            return cls(
                content=fields.part("content", NewContent.from_json),
                models=fields.texts_or_none("models", _MODELS),
                image=fields.text_or_none("image", _NAME),
                settings=ServiceSettings.asked(fields.document("settings") or {}),
                description=fields.text_or_none("description"),
                tags=fields.labels_or_none("tags"),
                add_tags=fields.labels("add_tags"),
                remove_tags=fields.texts("remove_tags"),
                properties=fields.texts_by_name("properties"),
                is_default=fields.flag_or_none("is_default"),
                is_control=fields.flag_or_none("is_control"),
                code=fields.part("code", NewCode.from_json),
                reload=fields.flag("reload"),
            )


@dataclass(frozen=True)
class NewKey:
    """Another key in the place of one of the two; None: the server makes one up."""

    which: str
    key: str | None = field(repr=False)

    @classmethod
    def from_json(cls, body: Any) -> NewKey:
        with Fields(body, "A new key") as fields:
            return cls(which=fields.text("which", _NAME), key=fields.text_or_none("key"))


def _environment(body: Any) -> WantedEnvironment:
    with Fields(body, "The environment of a service") as fields:
        return WantedEnvironment(
            name=fields.text_or_none("name"), lock=fields.text("lock", _NAME), said=fields.texts("said", 10_000)
        )


def _origin(body: Any) -> Origin:
    with Fields(body, "The origin of the code") as fields:
        return Origin(
            entry_script=fields.text("entry_script"),
            source_directory=fields.text_or_none("source_directory"),
            cwd=fields.text("cwd"),
            beside=fields.texts("beside"),
        )


def _keys(body: Any) -> Keys:
    with Fields(body, "The keys of a service") as fields:
        return Keys(primary=fields.text_or_none("primary"), secondary=fields.text_or_none("secondary"))
