"""Images, as SDK v1 had them in 2019, and packages: what a service would serve, kept under a name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain.deployment import NewContent
from lapis.domain.service import Labels, check_service_name
from lapis.domain.service_content import Content
from lapis.domain.values import Value, at_most
from lapis.errors import NotFound, WebserviceException
from lapis.server.control.access import Actor
from lapis.server.control.service_content import Contents
from lapis.server.control.shelf import Shelf
from lapis.server.control.workshop import Workshop
from lapis.server.store.assets import IMAGE, PACKAGE, Asset


@dataclass(frozen=True)
class NewImage(Value):
    name: str = field(metadata=at_most(255))
    content: NewContent = field(default_factory=NewContent)
    description: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=at_most(1000))
    properties: Mapping[str, str] = field(default_factory=dict, metadata=at_most(1000))


@dataclass(frozen=True)
class ImageChange(Value):
    tags: Mapping[str, str | None] = field(default_factory=dict, metadata=at_most(1000))
    remove_tags: tuple[str, ...] = field(default=(), metadata=at_most(1000))
    properties: Mapping[str, str] = field(default_factory=dict, metadata=at_most(1000))


class Images:
    def __init__(self, shelf: Shelf, contents: Contents, workshop: Workshop, now: Callable[[], float]) -> None:
        self._shelf = shelf
        self._contents = contents
        self._workshop = workshop
        self._now = now
        contents.of_image = self._content

    def create(self, actor: Actor, workspace_id: str, new: NewImage, kind: str = IMAGE) -> dict[str, Any]:
        """The next version of its name."""
        actor.may_change_workspace()
        if kind == IMAGE:
            check_service_name(new.name)
        content = self._contents.of_new(workspace_id, new.content, None)
        labels = Labels(new.description).with_tags(new.tags).with_properties(new.name, new.properties)
        body = {"content": content.to_json(), **labels._asdict()}
        asset = Asset(str(uuid.uuid4()), workspace_id, kind, new.name, self._now(), body=body)
        return self._view(self._shelf.assets.add(asset, lambda newest: None))

    def find(self, actor: Actor, workspace_id: str) -> list[dict[str, Any]]:
        actor.may_read(workspace_id)
        return [self._view(each) for each in self._shelf.assets.find(workspace_id, IMAGE)]

    def get(self, actor: Actor, workspace_id: str, name: str, version: int | None, kind: str = IMAGE) -> dict[str, Any]:
        actor.may_read(workspace_id)
        return self._view(self._asset(workspace_id, name, version, kind))

    def change(self, actor: Actor, workspace_id: str, name: str, version: int, change: ImageChange) -> dict[str, Any]:
        actor.may_change_workspace()

        def apply(found: Asset) -> Asset:
            labels = _labels(found).with_tags(change.tags, change.remove_tags)
            labels = labels.with_properties(f"image {name}:{version}", change.properties)
            return replace(found, body={**found.body, **labels._asdict()})

        asset = self._asset(workspace_id, name, version)
        return self._view(self._shelf.assets.change(workspace_id, asset.id, apply))

    def delete(self, actor: Actor, workspace_id: str, name: str, version: int) -> None:
        """Services that were deployed from it go on."""
        actor.may_change_workspace()
        asset = self._asset(workspace_id, name, version)
        self._shelf.assets.change(workspace_id, asset.id, lambda found: replace(found, body={"gone": self._now()}))

    def _content(self, workspace_id: str, image_id: str) -> Content:
        name, _, version = image_id.rpartition(":")
        if not name or not version.isdigit():
            raise WebserviceException(f"An image's id is name:version, and {image_id!r} is not.")
        return Content.from_json(self._asset(workspace_id, name, int(version)).body["content"])

    def _asset(self, workspace_id: str, name: str, version: int | None, kind: str = IMAGE) -> Asset:
        there = [each for each in self._shelf.assets.find(workspace_id, kind, name) if "gone" not in each.body]
        found = [each for each in there if version in (None, each.version)]
        if not found:
            known = sorted(
                f"{each.name}:{each.version}"
                for each in self._shelf.assets.find(workspace_id, kind)
                if "gone" not in each.body
            )
            which = name if version is None else f"{name}:{version}"
            raise NotFound(f"There is no {kind} '{which}' in this workspace. Known: {', '.join(known) or 'none'}.")
        return found[0]

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
            lock = self._workshop.lock(content.environment.lock) if content.environment is not None else None
            view["lock"] = None if lock is None else {"python": lock.python, "packages": lock.packages}
        return view


def _labels(asset: Asset) -> Labels:
    return Labels(asset.body["description"], asset.body["tags"], asset.body["properties"])
