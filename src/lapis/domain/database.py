"""What a datastore in a database is: where it answers, who goes in, and which of its values are secret."""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple

from lapis.errors import UserErrorException

POSTGRES, MYSQL, SQL_SERVER = "AzurePostgreSql", "AzureMySql", "AzureSqlDatabase"


class Kind(NamedTuple):
    domain: str  # of Azure's servers
    port: int
    options: frozenset[str]
    secrets: frozenset[str]
    ways_in: tuple[tuple[str, ...], ...]  # all values of one of these are needed


_PLACE = frozenset({"server_name", "database_name", "endpoint", "port_number"})
KINDS = {
    POSTGRES: Kind(
        "postgres.database.azure.com",
        5432,
        _PLACE | {"user_id", "enforce_ssl"},
        frozenset({"user_password"}),
        (("user_id", "user_password"),),
    ),
    MYSQL: Kind(
        "mysql.database.azure.com",
        3306,
        _PLACE | {"user_id"},
        frozenset({"user_password"}),
        (("user_id", "user_password"),),
    ),
    SQL_SERVER: Kind(
        "database.windows.net",
        1433,
        _PLACE | {"username", "tenant_id", "client_id", "resource_url", "authority_url"},
        frozenset({"password", "client_secret"}),
        (("username", "password"), ("tenant_id", "client_id", "client_secret")),
    ),
}
_HOST = re.compile(r"[A-Za-z0-9_]([\w.-]*[A-Za-z0-9_])?\Z|[0-9a-fA-F:]+\Z", re.ASCII)
_IN_NUMBERS = re.compile(r"[\d.]+\Z|.*:", re.ASCII)  # an address, which has no subdomains


def check_database(view: Mapping[str, Any]) -> None:
    """Raise unless type, options and credentials are such as can be used together."""
    kind = KINDS.get(str(view["type"]))
    if kind is None:
        raise UserErrorException(f"{view['type']!r} is no kind of database. Known: {', '.join(KINDS)}.")
    options, secrets = view["options"], view["credentials"]
    for given, known in ((options, kind.options), (secrets, kind.secrets)):
        strange = sorted(set(given) - known)
        if strange:
            raise UserErrorException(f"A datastore of type {view['type']!r} has no {', '.join(strange)}.")
        for name, value in given.items():
            if not isinstance(value, str) or not value or "\0" in value or (given is options and "\n" in value):
                raise UserErrorException(f"{name} must be text, and not empty.")
    for name in ("server_name", "database_name"):
        if not options.get(name):
            raise UserErrorException(f"A datastore of type {view['type']!r} needs {name}.")
    if not any(all(name in options or name in secrets for name in way) for way in kind.ways_in):
        ways = ", or ".join(" and ".join(way) for way in kind.ways_in)
        raise UserErrorException(
            f"A datastore of type {view['type']!r} needs {ways}: a Lapis server has no identity of its own."
        )
    if not _HOST.match(host_of(view)):
        raise UserErrorException(f"{host_of(view)!r} is not the name of a server.")
    port = options.get("port_number", "")
    if port and not (port.isdigit() and 0 < int(port) < 65536):
        raise UserErrorException(f"port_number must be a number from 1 to 65535, not {port!r}.")
    if options.get("enforce_ssl", "True") not in ("True", "False"):
        raise UserErrorException(f"enforce_ssl is True or False, not {options['enforce_ssl']!r}.")


def host_of(view: Mapping[str, Any]) -> str:
    """Where it answers. `sales` is a server of Azure; one of your own is named in full, or by its endpoint alone."""
    options = view["options"]
    server, endpoint = options["server_name"], options.get("endpoint")
    if endpoint and ("." not in endpoint or _IN_NUMBERS.match(endpoint)):
        return str(endpoint)
    if not endpoint and ("." in server or server == "localhost" or _IN_NUMBERS.match(server)):
        return str(server)
    domain = endpoint or KINDS[view["type"]].domain
    return str(server) if server.endswith("." + domain) else f"{server}.{domain}"


def port_of(view: Mapping[str, Any]) -> int:
    return int(view["options"].get("port_number") or KINDS[view["type"]].port)


def shown(view: Mapping[str, Any]) -> str:
    """A datastore for people, without anything secret."""
    database = view["options"]["database_name"]
    return f"Datastore '{view['name']}' (database '{database}' at {host_of(view)}:{port_of(view)})"
