"""Who gets which share of the requests that come in at an endpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Mapping, NamedTuple

from lapis.domain.service import ServiceRecord
from lapis.errors import WebserviceException


class Route(NamedTuple):
    percent: int
    address: str


def shares(service: ServiceRecord) -> dict[str, int]:
    """What each version gets; the default one what the others are not given, whatever was said of it."""
    given = {name: version.traffic for name, version in service.versions.items() if name != service.default}
    return {**given, service.default: 100 - sum(given.values())}


def routes(service: ServiceRecord) -> list[Route]:
    """To whom the gateway passes requests on; what is left stays there. One that cannot be reached gets nothing."""
    addresses = {name: version.address for name, version in service.versions.items()}
    return [
        Route(percent, address)
        for name, percent in shares(service).items()
        for address in [addresses[name]]
        if name != service.gateway and percent > 0 and address
    ]


def check_traffic(service: ServiceRecord, changed: Mapping[str, int], default: str) -> None:
    """Raise if, after a change, the versions beside the default one would be promised more than there is."""
    asked = {**{name: version.traffic for name, version in service.versions.items()}, **changed}
    beside = {name: percent for name, percent in asked.items() if name != default}
    given = sum(beside.values())
    if given > 100:
        told = ", ".join(f"{name} {percent}" for name, percent in beside.items() if percent)
        raise WebserviceException(f"The versions beside the default one would get {given} percent of traffic: {told}.")


def with_default(service: ServiceRecord, name: str) -> ServiceRecord:
    """Another version is the default one. Who gets how much stays: what the old one got is its share from now on."""
    if service.default == name:
        return service
    old = replace(service.versions[service.default], traffic=max(0, shares(service)[service.default]))
    return replace(service, default=name, versions={**service.versions, service.default: old})
