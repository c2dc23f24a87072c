"""Images, as SDK v1 had them in 2019, and packages: what a service would serve, kept under a name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain import limits
from lapis.domain.deployment import NewContent
from lapis.domain.service import Labels, check_service_name
from lapis.domain.service_content import Content
from lapis.domain.values import Value, at_most
from lapis.environments.environment_builds import EnvironmentBuilds
from lapis.server.control.access import SERVER, Actor
from lapis.server.control.sealing import Sealing
from lapis.server.control.service_content import Contents, find_image
from lapis.server.control.stores import Stores
from lapis.server.store.assets import IMAGE, PACKAGE, Asset


@dataclass(frozen=True)
class NewImage(Value):
    name: str = field(metadata=at_most(limits.NAME))
    content: NewContent = field(default_factory=NewContent)
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=at_most(limits.LABELS))
    properties: Mapping[str, str] = field(default_factory=dict, metadata=at_most(limits.LABELS))


@dataclass(frozen=True)
class ImageChange(Value):
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=at_most(limits.LABELS))
    remove_tags: tuple[str, ...] = field(default=(), metadata=at_most(limits.LABELS))
    properties: Mapping[str, str] = field(default_factory=dict, metadata=at_most(limits.LABELS))


class Images:
    def __init__(
        self,
        stores: Stores,
        contents: Contents,
        builds: EnvironmentBuilds,
        sealing: Sealing,
        now: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._sealing = sealing
        self._contents = contents
        self._builds = builds
        self._now = now

    def create(self, workspace_id: str, new: NewImage) -> dict[str, Any]:
        """The next version of its name."""
        check_service_name(new.name)
        return self._create(workspace_id, new, IMAGE)

    def create_package(self, workspace_id: str, new: NewImage) -> dict[str, Any]:
        return self._create(workspace_id, new, PACKAGE)

    def _create(self, workspace_id: str, new: NewImage, kind: str) -> dict[str, Any]:
        content = self._contents.of_new(workspace_id, new.content, None)
        labels = Labels(new.description).with_tags(new.tags).with_properties(new.name, new.properties)
        body = {"content": content.to_json(), **labels._asdict()}
        asset = Asset(str(uuid.uuid4()), workspace_id, kind, new.name, self._now(), body=body)
        return self._view(self._stores.assets.add(asset, lambda newest: None))

    def find(self, workspace_id: str) -> list[dict[str, Any]]:
        return [self._view(each) for each in self._stores.assets.find(workspace_id, IMAGE)]

    def get(self, workspace_id: str, name: str, version: int | None) -> dict[str, Any]:
        return self._view(find_image(self._stores, workspace_id, name, version))

    def get_package(self, workspace_id: str, name: str, version: int, *, by: Actor = SERVER) -> dict[str, Any]:
        """For who saves it elsewhere, where nobody could open its secrets."""
        view = self._view(find_image(self._stores, workspace_id, name, version, PACKAGE))
        return dict(view, content=self._sealing.seen(workspace_id, view["content"], by))

    def change(self, workspace_id: str, name: str, version: int, change: ImageChange) -> dict[str, Any]:

        def apply(stored: Asset) -> Asset:
            labels = _labels(stored).with_tags(change.tags, change.remove_tags)
            labels = labels.with_properties(f"image {name}:{version}", change.properties)
            return replace(stored, body={**stored.body, **labels._asdict()})

        asset = find_image(self._stores, workspace_id, name, version)
        return self._view(self._stores.assets.change(workspace_id, asset.id, apply))

    def delete(self, workspace_id: str, name: str, version: int) -> None:
        """Services that were deployed from it go on."""
        asset = find_image(self._stores, workspace_id, name, version)
        self._stores.assets.change(workspace_id, asset.id, lambda stored: replace(stored, body={"gone": self._now()}))

    def _view(self, asset: Asset) -> dict[str, Any]:
        if "gone" in asset.body:
            return {"id": f"{asset.name}:{asset.version}", "gone": asset.body["gone"]}
        content = Content.from_json(asset.body["content"])
        view = {
            "id": f"{asset.name}:{asset.version}",
            "name": asset.name,
            "version": asset.version,
            "created_at": asset.created_at,
            **_labels(asset)._asdict(),
            "content": content.to_json(),
            "models": [model.id for model in content.models],
        }
        if asset.kind == PACKAGE:
            view["files"] = self._contents.files_of(asset.workspace_id, content)
            lock = self._builds.lock(content.environment.lock) if content.environment is not None else None
            view["lock"] = None if lock is None else {"python": lock.python, "packages": lock.packages}
        return view


def _labels(asset: Asset) -> Labels:
    return Labels(asset.body["description"], asset.body["tags"], asset.body["properties"])
