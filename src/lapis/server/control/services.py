"""What can be done with services: deployed, found, updated, opened with keys and tokens, deleted."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lapis.domain import service_moves as moves
from lapis.domain import service_tokens
from lapis.domain import services as rules
from lapis.domain.run import RunRecord, check_labels, check_text, with_properties
from lapis.domain.services import ENDPOINT, PROFILED
from lapis.errors import Conflict, NotFound, WebserviceException
from lapis.server.control.access import Access, Actor
from lapis.server.control.computes import Computes
from lapis.server.control.ports import Ports
from lapis.server.control.service_content import Contents, NewContent
from lapis.server.control.service_views import Reports, ServiceViews, find_service, uses_tokens, version_of
from lapis.server.control.shelf import Shelf
from lapis.server.store.assets import SERVICE, Asset
from lapis.server.store.runs import RunFilter
from lapis.server.store.sealed import Sealer

_GONE_WITHIN = 25.0  # seconds that delete() waits for the processes to end
_UNKNOWN_BY_THEN = 4.0  # seconds after which nobody sends requests to a version that was deleted
_HEARD_WITHIN = 5.0  # seconds that a new key has to reach the front
_LIVE = ("auth_enabled", "token_auth_enabled")  # settings that a running front takes up
_KEYS = ("primary", "secondary")


@dataclass(frozen=True)
class NewService:
    __pydantic_config__ = {"extra": "forbid"}

    name: str
    kind: str
    content: NewContent | None = None
    image: str | None = None  # name:version, in place of the content
    like: str | None = None  # the name of a service that serves the same
    settings: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    description: str | None = None
    tags: dict[str, str | None] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    target: str | None = None
    version: str = ""  # the first one of an endpoint
    overwrite: bool = False
    created_by: str | None = None


@dataclass(frozen=True)
class Change:
    """What is given changes, the rest stays."""

    __pydantic_config__ = {"extra": "forbid"}

    content: NewContent | None = None
    models: list[str] | None = None  # others with the same code
    image: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    description: str | None = None
    tags: dict[str, str | None] | None = None  # in place of those that there are
    add_tags: dict[str, str | None] = field(default_factory=dict)
    remove_tags: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    is_default: bool | None = None
    is_control: bool | None = None
    code: dict[str, str | None] | None = None  # another snapshot, entry script and folder, all else the same
    reload: bool = False  # the same again


class Services:
    def __init__(
        self,
        shelf: Shelf,
        contents: Contents,
        computes: Computes,
        access: Access,
        home: str,
        host: str,
        now: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._shelf = shelf
        self._contents = contents
        self._computes = computes
        self._access = access
        self._sealer = Sealer(home)
        self._ports = Ports(host)
        self.host = host
        self._now = now
        self._wake = wake
        self.reports: Reports = {}
        self.views = ServiceViews(shelf, self.reports, host, now)
        self.front = self.views.front
        self.logs = self.views.logs

    # -- deployed

    def deploy(self, actor: Actor, workspace_id: str, new: NewService) -> dict[str, Any]:
        actor.may_change_workspace()
        self._check(workspace_id, new)
        there = self._find(workspace_id, new.name)
        if there is not None and not new.overwrite:
            raise WebserviceException(
                f"A service named '{new.name}' is there already. Pass overwrite=True to replace it, update() it, or "
                "delete() it first."
            )
        if new.like is not None:
            content = dict(moves.content_of(self.asset(workspace_id, new.like).body["versions"][""]))
        else:
            content = self._contents.of_new(workspace_id, new.content, new.image)
        if there is not None and there.body["kind"] == new.kind != ENDPOINT and not there.body["deleting"]:
            return self._replace(there, new, content)
        port = self._port(new, there)
        if there is not None:
            self.delete(actor, workspace_id, new.name)
        return self._add(workspace_id, new, content, port)

    def _check(self, workspace_id: str, new: NewService) -> None:
        rules.check_service_name(new.name)
        if new.kind not in rules.KINDS:
            raise WebserviceException(f"A service cannot be of kind {new.kind!r}. Known: {', '.join(rules.KINDS[:4])}.")
        if new.kind == ENDPOINT:
            rules.check_version_name(new.version)
        rules.check_settings(new.kind, {**new.settings, **{f"{which}_key": key for which, key in new.keys.items()}})
        check_labels("tags", new.tags)
        check_labels("properties", new.properties)
        check_text("description", new.description)
        if new.target is not None:
            self._computes.check_job(workspace_id, new.target, {})

    def _add(self, workspace_id: str, new: NewService, content: Mapping[str, Any], port: int) -> dict[str, Any]:
        now = self._now()
        slot = moves.new_slot(1, content, _of_version(new.settings), now)
        service_id = str(uuid.uuid4())
        about = {"place": service_id[:8], "is_control": True, **_labels(new)}
        body = {
            "kind": new.kind,
            "target": new.target,
            "settings": {key: value for key, value in new.settings.items() if value is not None},
            "sealed": self._sealer.seal(_fresh_keys(new.keys)),
            "created_by": new.created_by,
            "updated_at": now,
            "deleting": False,
            "gateway": new.version,
            "default": new.version,
            "versions": {new.version: moves.new_version(slot, port, 100, about)},
            "leaving": [],
            **_labels(new),
        }

        def which(found: Asset | None) -> Asset | None:
            if found is not None:
                raise WebserviceException(f"A service named '{new.name}' is being made already.")
            return None

        asset = Asset(service_id, workspace_id, SERVICE, new.name, now, body=body)
        made = self._shelf.assets.add(asset, which)
        self._wake()
        return self.view(made)

    def _replace(self, there: Asset, new: NewService, content: Mapping[str, Any]) -> dict[str, Any]:
        """The same name, the same address, everything else new: rolled, so that no request fails."""
        asked = new.settings.get("port")
        version = there.body["versions"][""]
        if asked not in (None, version["port"]):
            raise WebserviceException(
                f"Service '{new.name}' listens on port {version['port']}, and a service that is replaced keeps its "
                f"address. delete() it first to have it on port {asked}."
            )

        def apply(body: dict[str, Any]) -> None:
            body["settings"] = {key: value for key, value in new.settings.items() if value is not None}
            body["target"] = new.target
            body.update(_labels(new))
            if new.keys:
                body["sealed"] = self._sealer.seal(_fresh_keys(new.keys))
            self._roll(body, "", content, _of_version(new.settings))

        return self.view(self._change(there, apply))

    def _port(self, new: NewService, there: Asset | None) -> int:
        mine = {each["port"] for each in there.body["versions"].values()} if there is not None else set()
        asked = new.settings.get("port")
        if asked is None:
            return min(mine) if mine else self._ports.choose(self._taken())
        if asked not in mine:
            self._ports.check(int(asked), self._taken(), new.name)
        return int(asked)

    def _taken(self) -> dict[int, str]:
        """Ports that services have, whether they listen at the moment or not, by port."""
        return {
            int(version["port"]): asset.name
            for asset in self._shelf.assets.of_kind(SERVICE)
            for version in asset.body["versions"].values()
        }

    def _roll(
        self, body: dict[str, Any], version: str, content: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        there = body["versions"][version]
        slot = moves.new_slot(there["wanted"]["revision"] + 1, content, settings, self._now())
        body["versions"][version], dropped = moves.rolled(there, slot)
        body["leaving"] = [*body["leaving"], *(_leaving(run, self._now()) for run in dropped)]

    # -- found

    def get(self, actor: Actor, workspace_id: str, name: str) -> dict[str, Any]:
        actor.may_read(workspace_id)
        return self.view(self.asset(workspace_id, name))

    def all(self, actor: Actor, workspace_id: str) -> list[dict[str, Any]]:
        actor.may_read(workspace_id)
        found = self._shelf.assets.find(workspace_id, SERVICE)
        return [self.view(each) for each in found if each.body["kind"] != PROFILED]

    def used_by(self, workspace_id: str, asset_id: str) -> list[str]:
        """The services that a model serves in, by name."""
        return [
            each.name
            for each in self._shelf.assets.find(workspace_id, SERVICE)
            if any(asset_id == model["asset_id"] for model in _all_models(each))
        ]

    def on_target(self, workspace_id: str, target: str) -> list[str]:
        return [each.name for each in self._shelf.assets.find(workspace_id, SERVICE) if each.body["target"] == target]

    def count(self) -> int:
        """How many services there are: while there is one, the server has something to look after."""
        return len(self._shelf.assets.of_kind(SERVICE))

    def count_failed(self) -> int:
        """How many of them have a version that failed."""
        found = [each.body["versions"].values() for each in self._shelf.assets.of_kind(SERVICE)]
        return sum(
            any((each.get("wanted") or {}).get("state") == moves.FAILED for each in versions) for versions in found
        )

    def asset(self, workspace_id: str, name: str) -> Asset:
        return find_service(self._shelf, workspace_id, name)

    def _find(self, workspace_id: str, name: str) -> Asset | None:
        found = self._shelf.assets.find(workspace_id, SERVICE, name)
        return found[0] if found else None

    # -- updated

    def update(self, actor: Actor, workspace_id: str, name: str, change: Change) -> dict[str, Any]:
        actor.may_change_workspace()
        asset = self._living(workspace_id, name)
        if asset.body["kind"] == ENDPOINT and (change.content or change.models or change.image):
            raise WebserviceException(
                f"'{name}' is an endpoint: its models belong to its versions. Use update_version() or create_version()."
            )
        settings = rules.merged(asset.body["settings"], change.settings)
        rules.check_settings(asset.body["kind"], settings)
        content = self._changed_content(asset, asset.body["default"], change)

        def apply(body: dict[str, Any]) -> None:
            body["settings"] = settings
            _relabel(f"service '{name}'", body, change)
            rolls = [key for key in _given(change.settings) if key not in (*_LIVE, "enable_app_insights")]
            if body["kind"] != ENDPOINT and (content is not None or rolls or change.reload):
                wanted = body["versions"][""]["wanted"]
                self._roll(body, "", content or wanted["content"], _of_version(settings))

        changed = self._change(asset, apply)
        if any(key in change.settings for key in _LIVE):
            self._wait_until_heard(changed)
        return self.view(changed)

    def create_version(
        self, actor: Actor, workspace_id: str, name: str, version: str, change: Change
    ) -> dict[str, Any]:
        actor.may_change_workspace()
        rules.check_version_name(version)
        asset = self._endpoint(workspace_id, name)
        if version in asset.body["versions"]:
            raise WebserviceException(f"Endpoint '{name}' has a version '{version}' already. update_version() it.")
        settings = rules.merged(asset.body["settings"], change.settings)
        rules.check_settings(ENDPOINT, settings)
        if change.content is None and change.models is None:
            raise WebserviceException(f"Version '{version}' of '{name}' needs models, an inference_config, or both.")
        content = self._changed_content(asset, asset.body["default"], change)
        assert content is not None
        traffic = _traffic(change, 0)
        self._check_traffic(asset, {version: traffic}, version if change.is_default else None)
        port = self._ports.choose(self._taken())
        about = {
            "place": f"{asset.id[:8]}-{uuid.uuid4().hex[:4]}",
            "is_control": bool(change.is_control),
            "description": change.description,
            "tags": {**(change.tags or {}), **change.add_tags},
            "properties": change.properties,
        }

        def apply(body: dict[str, Any]) -> None:
            slot = moves.new_slot(1, content, _of_version(settings), self._now())
            body["versions"][version] = moves.new_version(slot, port, traffic, about)
            if change.is_default:
                _make_default(body, version)

        return self.view(self._change(asset, apply))

    def update_version(
        self, actor: Actor, workspace_id: str, name: str, version: str, change: Change
    ) -> dict[str, Any]:
        actor.may_change_workspace()
        asset = self._endpoint(workspace_id, name)
        there = version_of(asset, version)
        if change.is_default is False and asset.body["default"] == version:
            raise WebserviceException(
                f"Version '{version}' is the default one of '{name}'. Make another one the default."
            )
        settings = rules.merged({**asset.body["settings"], **there["wanted"]["settings"]}, change.settings)
        rules.check_settings(ENDPOINT, settings)
        content = self._changed_content(asset, version, change)
        self._check_traffic(
            asset, {version: _traffic(change, there["traffic"])}, version if change.is_default else None
        )

        def apply(body: dict[str, Any]) -> None:
            mine = body["versions"][version]
            mine["traffic"] = _traffic(change, mine["traffic"])
            if change.is_control is not None:
                mine["is_control"] = change.is_control
            if change.is_default:
                _make_default(body, version)
            _relabel(f"version '{version}' of service '{name}'", mine, change)
            rolls = [key for key in _given(change.settings) if key != "traffic_percentile"]
            if content is not None or rolls:
                self._roll(body, version, content or mine["wanted"]["content"], _of_version(settings))

        changed = self._change(asset, apply)
        self._wait_until_heard(changed)
        return self.view(changed)

    def delete_version(self, actor: Actor, workspace_id: str, name: str, version: str) -> dict[str, Any]:
        actor.may_change_workspace()
        asset = self._endpoint(workspace_id, name)
        version_of(asset, version)
        if asset.body["default"] == version:
            raise WebserviceException(
                f"Version '{version}' is the default one of '{name}' and cannot be deleted. Make another one the "
                "default with update_version(..., is_default=True), or delete() the endpoint."
            )

        def apply(body: dict[str, Any]) -> None:
            gone = body["versions"].pop(version)
            runs = [slot["run"] for slot in (gone["wanted"], gone["serving"]) if slot and slot["run"]]
            if body["gateway"] != version:
                soon = self._now() + _UNKNOWN_BY_THEN
                body["leaving"] = [*body["leaving"], *(_leaving(run, soon) for run in runs)]
                return
            # requests come in through it: the default version takes its place, and it goes when that is done
            heir = body["versions"][body["default"]]
            heir.update(place=gone["place"], port=gone["port"])
            body["gateway"] = body["default"]
            self._roll(body, body["default"], heir["wanted"]["content"], heir["wanted"]["settings"])
            body["leaving"] = [*body["leaving"], *({**_leaving(run, None), "until": body["default"]} for run in runs)]

        return self.view(self._change(asset, apply))

    def _changed_content(self, asset: Asset, version: str, change: Change) -> dict[str, Any] | None:
        """What is to be served from now on; None: what is served now."""
        before = moves.content_of(version_of(asset, version))
        if change.content is not None or change.image is not None:
            given = change.content
            if given is not None and change.models is None and not given.models:
                given = replace(given, models=[model["id"] for model in before["models"]])
            return self._contents.of_new(asset.workspace_id, given, change.image)
        if change.code is not None:
            return self._contents.with_code(before, change.code)
        if change.models is not None:
            return self._contents.with_models(asset.workspace_id, before, change.models)
        return None

    def _check_traffic(self, asset: Asset, changed: Mapping[str, int], default: str | None) -> None:
        shares = {name: each["traffic"] for name, each in asset.body["versions"].items()}
        rules.check_traffic({**shares, **changed}, default or asset.body["default"])

    def _endpoint(self, workspace_id: str, name: str) -> Asset:
        asset = self._living(workspace_id, name)
        if asset.body["kind"] != ENDPOINT:
            raise WebserviceException(f"Service '{name}' is no AksEndpoint and has no versions.")
        return asset

    def _living(self, workspace_id: str, name: str) -> Asset:
        asset = self.asset(workspace_id, name)
        if asset.body["deleting"]:
            raise WebserviceException(f"Service '{name}' is being deleted.")
        return asset

    def _change(self, asset: Asset, how: Callable[[dict[str, Any]], None]) -> Asset:
        def apply(found: Asset) -> Asset:
            body = {**found.body, "versions": {k: dict(v) for k, v in found.body["versions"].items()}}
            how(body)
            return replace(found, body={**body, "updated_at": self._now()})

        changed = self._shelf.assets.change(asset.workspace_id, asset.id, apply)
        self._wake()
        return changed

    # -- deleted

    def delete(self, actor: Actor, workspace_id: str, name: str) -> None:
        """Its processes have ended, and its port is free, when this returns."""
        actor.may_change_workspace()
        asset = self.asset(workspace_id, name)
        self._change(asset, lambda body: body.update(deleting=True))
        deadline = time.monotonic() + _GONE_WITHIN
        while self._is_there(asset):
            if time.monotonic() > deadline:
                raise Conflict(f"Service '{name}' is being deleted, and has not ended after {_GONE_WITHIN:.0f} s yet.")
            self._wake()
            time.sleep(0.03)

    def _is_there(self, asset: Asset) -> bool:
        found = self._find(asset.workspace_id, asset.name)
        return found is not None and found.id == asset.id

    # -- opened

    def keys(self, actor: Actor, workspace_id: str, name: str) -> dict[str, str]:
        actor.may_change_workspace()
        asset = self.asset(workspace_id, name)
        if not rules.uses_keys(asset.body["kind"], asset.body["settings"]):
            how = "tokens open it: get_token()" if uses_tokens(asset) else "it is open to whoever reaches it"
            raise WebserviceException(f"Service '{name}' has no keys: {how}. update(auth_enabled=True) gives it keys.")
        return self._keys(asset)

    def regenerate(self, actor: Actor, workspace_id: str, name: str, which: str, key: str | None) -> dict[str, str]:
        """A new key in the place of one of the two. The old one opens nothing any more when this returns."""
        keys = self.keys(actor, workspace_id, name)
        if which.lower() not in _KEYS:
            raise WebserviceException(f"A service has a Primary and a Secondary key, and no {which!r}.")
        if key is not None:
            rules.check_settings(rules.AKS, {"primary_key": key})
        fresh = {**keys, which.lower(): key or _new_key()}
        asset = self.asset(workspace_id, name)
        self._wait_until_heard(self._change(asset, lambda body: body.update(sealed=self._sealer.seal(fresh))))
        return fresh

    def token(self, actor: Actor, workspace_id: str, name: str) -> dict[str, Any]:
        actor.may_read(workspace_id)
        actor.may_upload()
        asset = self.asset(workspace_id, name)
        if not uses_tokens(asset):
            raise WebserviceException(
                f"Service '{name}' is not opened by tokens. Deploy or update it with token_auth_enabled=True."
            )
        expires = int(self._now() + rules.TOKEN_SECONDS)
        secret = self._access.service_secret(asset.id)
        return {
            "access_token": service_tokens.make(secret.encode(), expires, secrets.token_hex(8)),
            "token_type": "Bearer",
            "refresh_after": expires - rules.REFRESH_BEFORE,
            "expiry_on": expires,
        }

    def _keys(self, asset: Asset) -> dict[str, str]:
        return self._sealer.open(asset.body["sealed"], f"service '{asset.name}'")

    def _wait_until_heard(self, asset: Asset) -> None:
        """Until the fronts that answer have taken up what changed; one that does not speak need not be waited for."""
        deadline = time.monotonic() + _HEARD_WITHIN
        while time.monotonic() < deadline:
            fresh = self._find(asset.workspace_id, asset.name)
            if fresh is None or all(
                self._heard(fresh, name, slot)
                for name, version in fresh.body["versions"].items()
                for slot in (version["wanted"], version["serving"])
                if slot is not None and slot["state"] == rules.READY and self.front(slot) is not None
            ):
                return
            time.sleep(0.02)

    def _heard(self, asset: Asset, version: str, slot: Mapping[str, Any]) -> bool:
        told = self.reports[slot["run"]][1]
        return bool(told.get("live") == _mark(self.live(asset, version)))

    # -- what agents are told, and tell

    def live(self, asset: Asset, version: str) -> dict[str, Any]:
        """What a front takes up while it runs: who may ask, and who else answers."""
        kind, settings = asset.body["kind"], asset.body["settings"]
        keys = self._keys(asset).values() if rules.uses_keys(kind, settings) else ()
        auth = {
            "keys": [hashlib.sha256(key.encode()).hexdigest() for key in keys],
            "token_secret": self._access.service_secret(asset.id) if uses_tokens(asset) else None,
        }
        return {"auth": auth, "routes": self._routes(asset) if version == asset.body["gateway"] else []}

    def _routes(self, asset: Asset) -> list[dict[str, Any]]:
        shares = [rules.Share(name, each["traffic"], each["address"]) for name, each in asset.body["versions"].items()]
        return rules.routes(shares, asset.body["gateway"], asset.body["default"])

    def secrets(self, run: RunRecord) -> dict[str, Any]:
        """What goes along when a front is launched, and is stored with no run."""
        section = (run.job or {})["service"]
        asset = self._shelf.assets.get(run.workspace_id, section["id"])
        live = self.live(asset, section["version"])
        found = {"live": live, "live_mark": _mark(live)}
        return found if section["sockets"] else {**found, "front_lock": self._contents.front_lock()}

    def told(self, run: RunRecord, told: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the front of a run says; what it is to know, if that is not what it knows."""
        section = (run.job or {}).get("service")
        if section is None:
            return None
        known = self.reports.get(run.id, (0.0, {}))[1]
        self.reports[run.id] = (self._now(), told)
        before, after = ((each.get("front") or {}).get("state") for each in (known, told))
        if before != after or (known.get("front") or {}).get("error") != (told.get("front") or {}).get("error"):
            self._wake()
        try:
            asset = self._shelf.assets.get(run.workspace_id, section["id"])
        except NotFound:
            return None  # deleted: its run is about to be stopped
        if section["version"] not in asset.body["versions"]:
            return None
        live = self.live(asset, section["version"])
        mark = _mark(live)
        return None if told.get("live") == mark else {**live, "mark": mark}

    # -- told

    def view(self, asset: Asset) -> dict[str, Any]:
        return self.views.of(asset)

    def runs_of(self, asset: Asset) -> list[RunRecord]:
        """Every run that the service lived in."""
        where = RunFilter(
            workspace_id=asset.workspace_id, properties=(("lapis.service", asset.id),), archived=None, services=True
        )
        return self._shelf.runs.find_all(where)


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


_OF_VERSION = (*rules.DEFAULTS, "autoscale_enabled", "num_replicas", "cpu_cores_limit", "memory_gb_limit", "gpu_cores",
               "collect_model_data")  # fmt: skip


def _of_version(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that each version of an endpoint has for itself."""
    return {key: value for key, value in _given(settings).items() if key in _OF_VERSION}


def _labels(new: NewService) -> dict[str, Any]:
    return {"description": new.description, "tags": dict(new.tags), "properties": dict(new.properties)}


def _relabel(whose: str, body: dict[str, Any], change: Change) -> None:
    tags = dict(body["tags"] if change.tags is None else check_labels("tags", change.tags))
    tags.update(check_labels("tags", change.add_tags))
    body["tags"] = {key: value for key, value in tags.items() if key not in change.remove_tags}
    body["properties"] = with_properties(whose, body["properties"], check_labels("properties", change.properties))
    if change.description is not None:
        body["description"] = change.description


def _leaving(run_id: str, now: float | None) -> dict[str, Any]:
    return {"run": run_id, "cancel_at": now, "until": None}


def _make_default(body: dict[str, Any], name: str) -> None:
    """Who gets how much stays: what the old default one got is its share from now on."""
    shares = rules.effective({each: found["traffic"] for each, found in body["versions"].items()}, body["default"])
    if body["default"] != name:
        old = body["versions"][body["default"]]
        body["versions"][body["default"]] = {**old, "traffic": max(0, shares[body["default"]])}
        body["default"] = name


def _traffic(change: Change, before: int) -> int:
    asked = change.settings.get("traffic_percentile")
    return before if asked is None else int(asked)


def _all_models(asset: Asset) -> list[Mapping[str, Any]]:
    slots = [
        slot
        for each in asset.body["versions"].values()
        for slot in (each["wanted"], each["serving"])
        if slot is not None
    ]
    return [model for slot in slots for model in slot["content"]["models"]]


def _new_key() -> str:
    return secrets.token_urlsafe(24)


def _fresh_keys(given: Mapping[str, str]) -> dict[str, str]:
    return {which: given.get(which) or _new_key() for which in _KEYS}


def _mark(live: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(live, sort_keys=True).encode()).hexdigest()[:16]
