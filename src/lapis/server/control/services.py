"""What can be done with services: deployed, found, updated, opened with keys and tokens, deleted."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lapis.domain import service_moves as moves
from lapis.domain import service_tokens
from lapis.domain import service_traffic as traffic
from lapis.domain.deployment import NewKey, NewService, ServiceChange
from lapis.domain.job import Job
from lapis.domain.run import RunRecord, check_labels
from lapis.domain.run_filter import RunFilter
from lapis.domain.service import (
    READY,
    Labels,
    ServiceRecord,
    Slot,
    Version,
    check_service_name,
    check_version_name,
)
from lapis.domain.service_content import Content
from lapis.domain.service_settings import ENDPOINT, NO_KEYS, PROFILED, Keys, ServiceSettings, check_key, given
from lapis.errors import Conflict, WebserviceException
from lapis.server.control.access import Access
from lapis.server.control.computes import Computes
from lapis.server.control.events import Events
from lapis.server.control.ports import Ports
from lapis.server.control.service_content import Contents
from lapis.server.control.service_fronts import ServiceFronts
from lapis.server.control.service_views import ServiceViews, find_service
from lapis.server.control.stores import Stores
from lapis.server.control.waiting import WaitingRuns
from lapis.server.store.sealed import Sealer

_GONE_WITHIN = 25.0  # seconds that delete() waits for the processes to end
_HEARD_WITHIN = 5.0  # seconds that a new key has to reach the front
_LIVE = ("auth_enabled", "token_auth_enabled")  # settings that a running front takes up
_KEYS = ("primary", "secondary")
_ROLLS_NOTHING = (*_LIVE, "enable_app_insights", "traffic_percentile")


class Services:
    def __init__(
        self,
        stores: Stores,
        contents: Contents,
        computes: Computes,
        fronts: ServiceFronts,
        waiting: WaitingRuns,
        access: Access,
        events: Events,
        home: str,
        host: str,
        now: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._stores = stores
        self._contents = contents
        self._computes = computes
        self._fronts = fronts
        self._access = access
        self._sealer = Sealer(home)
        self._ports = Ports(host)
        self.host = host
        self._now, self._steady = now, steady
        self._wake = events.wake
        self._views = ServiceViews(stores, fronts, waiting, host, steady)

    # -- deployed

    def deploy(self, workspace_id: str, new: NewService) -> dict[str, Any]:
        self._check(workspace_id, new)
        there = self._stores.services.named(workspace_id, new.name)
        if there is not None and not new.overwrite:
            raise WebserviceException(
                f"A service named '{new.name}' is there already. Pass overwrite=True to replace it, update() it, or "
                "delete() it first."
            )
        if new.like is not None:
            content = self.service(workspace_id, new.like).version("").wanted.content
        else:
            content = self._contents.of_new(workspace_id, new.content, new.image)
        if there is not None and there.kind == new.kind != ENDPOINT and not there.deleting:
            return self._replace(there, new, content)
        port = self._port(new, there)
        if there is not None:
            self.delete(workspace_id, new.name)
        return self._add(workspace_id, new, content, port)

    def _check(self, workspace_id: str, new: NewService) -> None:
        check_service_name(new.name)
        if new.kind == ENDPOINT:
            check_version_name(new.version)
        elif new.version:
            raise WebserviceException(f"Only an AksEndpoint has versions; '{new.name}' cannot have '{new.version}'.")
        new.settings.check(new.kind, new.keys)
        if new.target is not None:
            self._computes.check_job(workspace_id, new.target, Job())

    def _add(self, workspace_id: str, new: NewService, content: Content, port: int) -> dict[str, Any]:
        now = self._now()
        service_id = str(uuid.uuid4())
        labels = _labels(new)._asdict()
        slot = Slot(1, content, new.settings.of_version(), restart_at=self._steady())
        service = ServiceRecord(
            id=service_id,
            workspace_id=workspace_id,
            name=new.name,
            created_at=now,
            updated_at=now,
            kind=new.kind,
            sealed=self._sealer.seal(_fresh_keys(new.keys)),
            versions={new.version: Version(port, service_id[:8], 100, slot, **labels)},
            settings=new.settings,
            target=new.target,
            gateway=new.version,
            default=new.version,
            created_by=new.created_by,
            **labels,
        )
        self._stores.services.add(service)
        self._wake()
        return self.view(service)

    def _replace(self, there: ServiceRecord, new: NewService, content: Content) -> dict[str, Any]:
        """The same name, the same address, everything else new: rolled, so that no request fails."""
        port = there.version("").port
        if new.settings.port not in (None, port):
            raise WebserviceException(
                f"Service '{new.name}' listens on port {port}, and a service that is replaced keeps its address. "
                f"delete() it first to have it on port {new.settings.port}."
            )

        def apply(stored: ServiceRecord) -> ServiceRecord:
            sealed = stored.sealed if new.keys == NO_KEYS else self._sealer.seal(_fresh_keys(new.keys))
            made = replace(stored, settings=new.settings, target=new.target, sealed=sealed, **_labels(new)._asdict())
            return self._rolled(made, "", content, new.settings)

        return self.view(self._change(there, apply))

    def _port(self, new: NewService, there: ServiceRecord | None) -> int:
        mine = {version.port for version in there.versions.values()} if there is not None else set()
        asked = new.settings.port
        if asked is None:
            return min(mine) if mine else self._ports.choose(self._taken())
        if asked not in mine:
            self._ports.check(asked, self._taken(), new.name)
        return asked

    def _taken(self) -> dict[int, str]:
        """Ports that services have, whether they listen at the moment or not, by port."""
        return {
            version.port: service.name
            for service in self._stores.services.all()
            for version in service.versions.values()
        }

    def _rolled(
        self, service: ServiceRecord, version: str, content: Content | None, settings: ServiceSettings
    ) -> ServiceRecord:
        """With a next revision; without other content, of what there is."""
        content = content or service.versions[version].wanted.content
        return moves.rolled(service, version, content, settings.of_version(), self._steady())

    # -- found

    def get(self, workspace_id: str, name: str) -> dict[str, Any]:
        return self.view(self.service(workspace_id, name))

    def all(self, workspace_id: str) -> list[dict[str, Any]]:
        found = self._stores.services.of_workspace(workspace_id)
        return [self.view(each) for each in found if each.kind != PROFILED]

    def service(self, workspace_id: str, name: str) -> ServiceRecord:
        return find_service(self._stores, workspace_id, name)

    # -- updated

    def update(self, workspace_id: str, name: str, change: ServiceChange) -> dict[str, Any]:
        service = self._living(workspace_id, name)
        if service.kind == ENDPOINT and (change.content or change.models or change.image):
            raise WebserviceException(
                f"'{name}' is an endpoint: its models belong to its versions. Use update_version() or create_version()."
            )
        settings = service.settings.changed(change.settings)
        settings.check(service.kind)
        content = self._changed_content(service, service.default, change)

        def apply(stored: ServiceRecord) -> ServiceRecord:
            labels = _relabeled(f"service '{name}'", stored.labels, change)
            stored = replace(stored, settings=settings, **labels._asdict())
            if stored.kind != ENDPOINT and (content is not None or _rolls(change) or change.reload):
                return self._rolled(stored, "", content, settings)
            return stored

        changed = self._change(service, apply)
        if any(name in change.settings.to_json() for name in _LIVE):
            self._wait_until_heard(changed)
        return self.view(changed)

    def create_version(self, workspace_id: str, name: str, version: str, change: ServiceChange) -> dict[str, Any]:
        check_version_name(version)
        service = self._endpoint(workspace_id, name)
        _check_is_new(service, version)
        settings = service.settings.changed(change.settings)
        settings.check(ENDPOINT)
        if change.content is None and change.models is None:
            raise WebserviceException(f"Version '{version}' of '{name}' needs models, an inference_config, or both.")
        content = self._changed_content(service, service.default, change)
        assert content is not None
        share = given(change.settings.traffic_percentile, 0)
        traffic.check_traffic(service, {version: share}, version if change.is_default else service.default)
        fresh = Version(
            port=self._ports.choose(self._taken()),
            place=f"{service.id[:8]}-{uuid.uuid4().hex[:4]}",
            traffic=share,
            wanted=Slot(1, content, settings.of_version(), restart_at=self._steady()),
            is_control=bool(change.is_control),
            **_relabeled(f"version '{version}'", Labels(), change)._asdict(),
        )

        def apply(stored: ServiceRecord) -> ServiceRecord:
            _check_is_new(stored, version)
            stored = moves.with_version(stored, version, fresh)
            return traffic.with_default(stored, version) if change.is_default else stored

        return self.view(self._change(service, apply))

    def update_version(self, workspace_id: str, name: str, version: str, change: ServiceChange) -> dict[str, Any]:
        service = self._endpoint(workspace_id, name)
        there = service.version(version)
        if change.is_default is False and service.default == version:
            raise WebserviceException(
                f"Version '{version}' is the default one of '{name}'. Make another one the default."
            )
        settings = there.wanted.settings.over(service.settings).changed(change.settings)
        settings.check(ENDPOINT)
        content = self._changed_content(service, version, change)
        share = given(change.settings.traffic_percentile, there.traffic)
        traffic.check_traffic(service, {version: share}, version if change.is_default else service.default)

        def apply(stored: ServiceRecord) -> ServiceRecord:
            mine = stored.version(version)
            mine = replace(
                mine,
                traffic=given(change.settings.traffic_percentile, mine.traffic),
                is_control=given(change.is_control, mine.is_control),
                **_relabeled(f"version '{version}' of service '{name}'", mine.labels, change)._asdict(),
            )
            stored = moves.with_version(stored, version, mine)
            if change.is_default:
                stored = traffic.with_default(stored, version)
            rolls = content is not None or _rolls(change)
            return self._rolled(stored, version, content, settings) if rolls else stored

        changed = self._change(service, apply)
        self._wait_until_heard(changed)
        return self.view(changed)

    def delete_version(self, workspace_id: str, name: str, version: str) -> dict[str, Any]:
        service = self._endpoint(workspace_id, name)
        service.version(version)
        if service.default == version:
            raise WebserviceException(
                f"Version '{version}' is the default one of '{name}' and cannot be deleted. Make another one the "
                "default with update_version(..., is_default=True), or delete() the endpoint."
            )
        return self.view(self._change(service, lambda stored: moves.version_deleted(stored, version, self._steady())))

    def _changed_content(self, service: ServiceRecord, version: str, change: ServiceChange) -> Content | None:
        """What is to be served from now on; None: what is served now."""
        before = service.version(version).wanted.content
        if change.content is not None or change.image is not None:
            content = change.content
            if content is not None and change.models is None and not content.models:
                content = replace(content, models=tuple(model.id for model in before.models))
            return self._contents.of_new(service.workspace_id, content, change.image)
        if change.code is not None:
            return self._contents.with_code(service.workspace_id, before, change.code)
        if change.models is not None:
            return self._contents.with_models(service.workspace_id, before, change.models)
        return None

    def _endpoint(self, workspace_id: str, name: str) -> ServiceRecord:
        service = self._living(workspace_id, name)
        if service.kind != ENDPOINT:
            raise WebserviceException(f"Service '{name}' is no AksEndpoint and has no versions.")
        return service

    def _living(self, workspace_id: str, name: str) -> ServiceRecord:
        service = self.service(workspace_id, name)
        if service.deleting:
            raise WebserviceException(f"Service '{name}' is being deleted.")
        return service

    def _change(self, service: ServiceRecord, how: Callable[[ServiceRecord], ServiceRecord]) -> ServiceRecord:
        changed = self._stores.services.change(service, lambda stored: replace(how(stored), updated_at=self._now()))
        self._wake()
        return changed

    # -- deleted

    def delete(self, workspace_id: str, name: str) -> None:
        """Its processes have ended, and its port is free, when this returns."""
        service = self.service(workspace_id, name)
        self._change(service, lambda stored: replace(stored, deleting=True))
        deadline = time.monotonic() + _GONE_WITHIN
        while self._is_there(service):
            if time.monotonic() > deadline:
                raise Conflict(f"Service '{name}' is being deleted, and has not ended after {_GONE_WITHIN:.0f} s yet.")
            self._wake()
            time.sleep(0.03)

    def _is_there(self, service: ServiceRecord) -> bool:
        found = self._stores.services.named(service.workspace_id, service.name)
        return found is not None and found.id == service.id

    # -- opened

    def keys(self, workspace_id: str, name: str) -> dict[str, str]:
        service = self.service(workspace_id, name)
        if not service.uses_keys:
            how = "tokens open it: get_token()" if service.uses_tokens else "it is open to whoever reaches it"
            raise WebserviceException(f"Service '{name}' has no keys: {how}. update(auth_enabled=True) gives it keys.")
        return self._fronts.keys(service)

    def regenerate(self, workspace_id: str, name: str, new: NewKey) -> dict[str, str]:
        """A new key in the place of one of the two. The old one opens nothing any more when this returns."""
        keys = self.keys(workspace_id, name)
        if new.which.lower() not in _KEYS:
            raise WebserviceException(f"A service has a Primary and a Secondary key, and no {new.which!r}.")
        if new.key is not None:
            check_key("The key", new.key)
        fresh = {**keys, new.which.lower(): new.key or _new_key()}
        service = self.service(workspace_id, name)
        sealed = self._sealer.seal(fresh)
        self._wait_until_heard(self._change(service, lambda stored: replace(stored, sealed=sealed)))
        return fresh

    def token(self, workspace_id: str, name: str) -> dict[str, Any]:
        service = self.service(workspace_id, name)
        if not service.uses_tokens:
            raise WebserviceException(
                f"Service '{name}' is not opened by tokens. Deploy or update it with token_auth_enabled=True."
            )
        expires = int(self._now() + service_tokens.SECONDS)
        secret = self._access.service_secret(service.id)
        return {
            "access_token": service_tokens.make(secret.encode(), expires, secrets.token_hex(8)),
            "token_type": "Bearer",
            "refresh_after": expires - service_tokens.REFRESH_BEFORE,
            "expiry_on": expires,
        }

    def _wait_until_heard(self, service: ServiceRecord) -> None:
        """Until the fronts that answer have taken up what changed; one that does not speak need not be waited for."""
        deadline = time.monotonic() + _HEARD_WITHIN
        while time.monotonic() < deadline:
            fresh = self._stores.services.named(service.workspace_id, service.name)
            if fresh is None or all(
                self._fronts.has_heard(fresh, name, slot)
                for name, version in fresh.versions.items()
                for slot in version.slots
                if slot.state == READY and self._fronts.front(slot) is not None
            ):
                return
            time.sleep(0.02)

    # -- told

    def view(self, service: ServiceRecord) -> dict[str, Any]:
        return self._views.of(service)

    def logs(self, workspace_id: str, name: str, version: str | None, lines: int, init: bool) -> str:
        return self._views.logs(workspace_id, name, version, lines, init)

    def runs_of(self, service: ServiceRecord) -> list[RunRecord]:
        """Every run that the service lived in."""
        where = RunFilter(
            workspace_id=service.workspace_id, properties=(("lapis.service", service.id),), archived=None, services=True
        )
        return self._stores.runs.find_all(where)


def _labels(new: NewService) -> Labels:
    return Labels(new.description, check_labels("tags", new.tags), check_labels("properties", new.properties))


def _relabeled(whose: str, labels: Labels, change: ServiceChange) -> Labels:
    if change.tags is not None:
        labels = labels._replace(tags=check_labels("tags", change.tags))
    if change.description is not None:
        labels = labels._replace(description=change.description)
    return labels.with_tags(change.add_tags, change.remove_tags).with_properties(whose, change.properties)


def _check_is_new(service: ServiceRecord, version: str) -> None:
    if version in service.versions:
        raise WebserviceException(f"Endpoint '{service.name}' has a version '{version}' already. update_version() it.")


def _rolls(change: ServiceChange) -> bool:
    """Whether it changes a setting that a running front does not take up."""
    return any(name not in _ROLLS_NOTHING for name in change.settings.to_json())


def _new_key() -> str:
    return secrets.token_urlsafe(24)


def _fresh_keys(chosen: Keys) -> dict[str, str]:
    return {"primary": chosen.primary or _new_key(), "secondary": chosen.secondary or _new_key()}
