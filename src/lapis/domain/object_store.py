"""What a datastore in an object store is: an address, options, and which of its values are secret."""

from __future__ import annotations

import re
from typing import Any, Mapping
from urllib.parse import urlsplit

from lapis.errors import UserErrorException

BLOB, LAKE, S3, GCS = "AzureBlob", "AzureDataLakeGen2", "AmazonS3", "GoogleCloudStorage"
FILES, SHARE = "AzureFile", "SmbShare"
SCHEMES = {BLOB: "az", LAKE: "az", S3: "s3", GCS: "gs", FILES: "smb", SHARE: "smb"}
_SECRETS = {
    "az": {"account_key", "sas_token", "client_secret"},
    "s3": {"access_key", "secret_key"},
    "gs": {"service_account"},
    "smb": {"account_key", "password"},
}
_OPTIONS = {
    "az": {"account_name", "protocol", "endpoint", "tenant_id", "client_id", "authority_url"},
    "s3": {"endpoint", "region"},
    "gs": {"endpoint", "project"},
    "smb": {"account_name", "protocol", "endpoint", "user", "encrypt"},
}
_WHAT = {"az": "container", "smb": "share"}
_BUCKET = re.compile(r"^[a-zA-Z0-9$_][a-zA-Z0-9._-]{1,220}$", re.ASCII)
_SHARE = re.compile(r"^[a-zA-Z0-9_][a-zA-Z0-9 ._$-]{0,79}$", re.ASCII)
_SERVER = re.compile(r"^(\[[0-9a-fA-F:]+\]|[a-zA-Z0-9._-]+)(:\d{1,5})?$", re.ASCII)
_ACCOUNT = re.compile(r"^[a-z0-9]{3,24}$", re.ASCII)
_WITHOUT_NAMES = re.compile(r"^(localhost|[\d.]+|\[[0-9a-fA-F:]+\])(:\d+)?$")  # hosts that have no subdomains


def check_object_store(view: Mapping[str, Any]) -> None:
    """Raise unless type, url, options and credentials are such as can be used together."""
    scheme = SCHEMES.get(str(view["type"]))
    parts = urlsplit(str(view["url"]))
    if scheme is None or parts.scheme != scheme:
        raise UserErrorException(f"A datastore of type {view['type']!r} cannot lie at {view['url']!r}.")
    what = _WHAT.get(scheme, "bucket")
    if not (_SHARE if scheme == "smb" else _BUCKET).match(parts.netloc) or any(parts[2:]):
        raise UserErrorException(f"{str(view['url']).partition('://')[2]!r} is not the name of a {what}.")
    for given, known in ((view["options"], _OPTIONS), (view["credentials"], _SECRETS)):
        strange = sorted(set(given) - known[scheme])
        if strange:
            raise UserErrorException(f"A datastore of type {view['type']!r} has no {', '.join(strange)}.")
        if any(not isinstance(value, str) or not value or not value.isprintable() for value in given.values()):
            raise UserErrorException(f"{', '.join(sorted(given))} must be text on one line, and not empty.")
    if any(";" in value for name, value in view["credentials"].items() if scheme == "az"):
        raise UserErrorException("A credential holds a ';', which no account key and no SAS token has.")
    if scheme == "smb":
        _check_share(view)
    if view["type"] in (BLOB, LAKE, FILES) and not _ACCOUNT.match(view["options"].get("account_name", "")):
        account = view["options"].get("account_name")
        raise UserErrorException(f"account_name {account!r} is none: it has 3 to 24 small letters and digits.")
    if ("access_key" in view["credentials"]) != ("secret_key" in view["credentials"]):
        raise UserErrorException("access_key and secret_key are given together, or not at all for a public bucket.")
    address = urlsplit(endpoint_of(view))
    good = _SERVER.match("".join(address[1:])) if scheme == "smb" else address.scheme in ("http", "https")
    if not good or not address.hostname or "@" in address.netloc or address.query:
        raise UserErrorException(
            f"The endpoint {view['options'].get('endpoint')!r} is not an address that can be used."
        )


def _check_share(view: Mapping[str, Any]) -> None:
    named = ("account_name", "account_key") if view["type"] == FILES else ("user", "password")
    lacking = [name for name in named if name not in view["options"] and name not in view["credentials"]]
    if lacking:
        raise UserErrorException(f"A datastore of type {view['type']!r} needs {' and '.join(lacking)}.")
    if view["type"] == SHARE and "endpoint" not in view["options"]:
        raise UserErrorException("The host of the share is needed: 'nas.lab.lan', or 'nas.lab.lan:1445' with its port.")


def endpoint_of(view: Mapping[str, Any]) -> str:
    """Where the store answers."""
    options, scheme = view["options"], urlsplit(view["url"]).scheme
    given = str(options.get("endpoint") or "").rstrip("/")
    if scheme == "s3":
        region = options.get("region")
        return given or (f"https://s3.{region}.amazonaws.com" if region else "https://s3.amazonaws.com")
    if scheme == "gs":
        return given or "https://storage.googleapis.com"
    if scheme == "smb":
        return _share_endpoint(str(view["type"]), options.get("account_name"), given)
    protocol, account = options.get("protocol") or "https", options.get("account_name")
    if "://" in given:
        return given
    if _WITHOUT_NAMES.match(given):  # as the emulators have it: the account is a folder
        return f"{protocol}://{given}/{account}"
    return "{}://{}.blob.{}".format(protocol, account, given or "core.windows.net")


def _share_endpoint(kind: str, account: Any, given: str) -> str:
    """Azure's is a domain; an address, or a host with its port, is a server that you own."""
    if given.startswith("smb://"):
        return given
    if kind == SHARE or _WITHOUT_NAMES.match(given) or ":" in given:
        return f"smb://{given}"
    return "smb://{}.file.{}".format(account, given or "core.windows.net")


def hosts_of(view: Mapping[str, Any]) -> list[str]:
    """The hosts that are asked: the store's own, and the one that gives out its tokens."""
    given = [endpoint_of(view), str(view["options"].get("authority_url") or "")]
    return [str(urlsplit(each).hostname) for each in given if urlsplit(each).hostname]


def credential_type(view: Mapping[str, Any]) -> str:
    """How one gets in, for people."""
    given = view["credentials"]
    for name, word in (
        ("account_key", "AccountKey"),
        ("sas_token", "Sas"),
        ("client_secret", "ServicePrincipal"),
        ("password", "Password"),
    ):
        if name in given:
            return word
    return "Key" if given else "None"


def shown(view: Mapping[str, Any]) -> str:
    """The address for people, without anything secret."""
    return "{} at {}".format(view["url"], endpoint_of(view))
