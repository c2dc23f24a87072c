"""Images, as SDK v1 had them in 2019, and packages: what a service would serve, kept under a name."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain.run import check_labels, with_properties
from lapis.domain.services import check_service_name
from lapis.server.control.environment_builds import EnvironmentBuilds
from lapis.server.control.service_content import Contents, NewContent, find_image
from lapis.server.control.stores import Stores
from lapis.server.store.assets import IMAGE, PACKAGE, Asset


@dataclass(frozen=True)
class NewImage:
    __pydantic_config__ = {"extra": "forbid"}

    name: str
    content: NewContent
    description: str | None = None
    tags: dict[str, str | None] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)


class Images:
    def __init__(self, stores: Stores, contents: Contents, builds: EnvironmentBuilds, now: Callable[[], float]) -> None:
        self._stores = stores
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
        body = {
            "content": self._contents.of_new(workspace_id, new.content, None),
            "description": new.description,
            "tags": check_labels("tags", new.tags),
            "properties": check_labels("properties", new.properties),
        }
        asset = Asset(str(uuid.uuid4()), workspace_id, kind, new.name, self._now(), body=body)
        return self._view(self._stores.assets.add(asset, lambda newest: None))

    def find(self, workspace_id: str) -> list[dict[str, Any]]:
        return [self._view(each) for each in self._stores.assets.find(workspace_id, IMAGE)]

    def get(self, workspace_id: str, name: str, version: int | None) -> dict[str, Any]:
        return self._view(find_image(self._stores, workspace_id, name, version))

    def get_package(self, workspace_id: str, name: str, version: int) -> dict[str, Any]:
        return self._view(find_image(self._stores, workspace_id, name, version, PACKAGE))

    def change(self, workspace_id: str, name: str, version: int, changes: Mapping[str, Any]) -> dict[str, Any]:

        def apply(found: Asset) -> Asset:
            tags = {**found.body["tags"], **check_labels("tags", changes.get("tags") or {})}
            tags = {key: value for key, value in tags.items() if key not in (changes.get("remove_tags") or ())}
            more = check_labels("properties", changes.get("properties") or {})
            properties = with_properties(f"image {name}:{version}", found.body["properties"], more)
            return replace(found, body={**found.body, "tags": tags, "properties": properties})

        asset = find_image(self._stores, workspace_id, name, version)
        return self._view(self._stores.assets.change(workspace_id, asset.id, apply))

    def delete(self, workspace_id: str, name: str, version: int) -> None:
        """Services that were deployed from it go on."""
        asset = find_image(self._stores, workspace_id, name, version)
        self._stores.assets.change(workspace_id, asset.id, lambda found: replace(found, body={"gone": self._now()}))

    def _view(self, asset: Asset) -> dict[str, Any]:
        if "gone" in asset.body:
            return {"id": f"{asset.name}:{asset.version}", "gone": asset.body["gone"]}
        content = asset.body["content"]
        view = {
            "id": f"{asset.name}:{asset.version}",
            "name": asset.name,
            "version": asset.version,
            "created_at": asset.created_at,
            **asset.body,
            "models": [model["id"] for model in content["models"]],
        }
        if asset.kind == PACKAGE:
            view["files"] = self._contents.files_of(asset.workspace_id, content)
            lock = self._builds.lock(content["environment"]["lock"]) if content["environment"] else None
            view["lock"] = None if lock is None else {"python": lock.python, "packages": lock.packages}
        return view
