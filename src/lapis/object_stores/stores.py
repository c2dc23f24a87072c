"""Opens the object store behind a datastore, and finds, reads and writes objects in it. fsspec comes in here only.

A file share is one too: its files are the objects.

Nothing of what a store's library says reaches the user but a code: its messages may quote credentials.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from lapis.domain.addresses import refusal, rule_of
from lapis.domain.data import fixed_part, glob_matcher, has_glob
from lapis.domain.object_store import endpoint_of, hosts_of, shown
from lapis.domain.tree import check_path
from lapis.errors import AuthenticationException, AzureMLException, NotFound, UserErrorException
from lapis.machine.extras import how_to_get

REACH_SECONDS = 5.0
READ_SECONDS = 60
_PORTS = {"https": 443, "http": 80, "smb": 445}


class Object(NamedTuple):
    """One object, and what says whether it is still the same: its key, size and mark."""

    key: str
    size: int
    mark: str  # its ETag, else the time of its last change
    modified: float | None = None  # seconds since 1970, if the store says so


class Kind(NamedTuple):
    package: str
    extra: str
    what: str
    open: Callable[[Mapping[str, Any]], Any]
    part: Callable[..., Any] | None = None  # a coroutine: part of an object if it has the mark, and the mark it has
    tries: int = 1  # of that; some libraries try again by themselves
    made_by: str = ""  # who makes a container, where it is not us


class ObjectStore:
    """`access` is a datastore's view with its credentials. Safe to share between threads."""

    def __init__(self, access: Mapping[str, Any]) -> None:
        self.name = str(access["name"])
        self.endpoint = endpoint_of(access)
        self.bucket = urlsplit(access["url"]).netloc
        self._kind = KINDS[urlsplit(access["url"]).scheme]
        self._shown = f"Datastore '{self.name}' ({shown(access)})"
        self._check_addresses(access)
        try:
            self._fs = self._kind.open(access)
        except ImportError as missing:
            raise UserErrorException(
                f"Datastore '{self.name}' needs the package '{missing.name or self._kind.package}' in the Python that "
                f"reads it: {how_to_get(self._kind.extra)}."
            ) from None
        except Exception as error:  # a key that is no key, a token file that is not there
            raise AuthenticationException(
                f"{self._shown} cannot be opened with these credentials ({type(error).__name__})."
            ) from None
        self._reach()

    def check(self, create: bool = False) -> None:
        """That the container is there and may be listed; with `create` it is made where it is not."""
        try:
            self._call("listed", None, self._fs.ls, self.bucket)
        except NotFound as error:
            if not create:
                raise
            if self._kind.made_by:
                raise NotFound(f"{error.message} It cannot be made from here: {self._kind.made_by}.") from None
            self._call("created", None, self._fs.mkdir, self.bucket)

    def find(self, pattern: str) -> list[Object]:
        """What a path or a pattern stands for, by name: one object, all below a folder, or those that match."""
        pattern = pattern.strip("/")
        if pattern and not has_glob(pattern):
            one = self.info(check_path(pattern))
            if one is not None:
                return [one]
            pattern += "/**"
        start = "/".join(filter(None, [self.bucket, fixed_part(pattern)]))
        try:
            rows = self._call("listed", None, self._fs.find, start, detail=True)
        except NotFound:
            rows = {}
        if not rows:
            self.check()  # is it the container that is missing?
        matches = glob_matcher(pattern or "**").match
        found = [self._object(name, row) for name, row in rows.items() if _is_file(name, row)]
        return sorted(each for each in found if matches(each.key))

    def info(self, key: str) -> Object | None:
        try:
            row = self._call("read", key, self._fs.info, f"{self.bucket}/{key}")
        except NotFound:
            return None
        return self._object(row["name"], row) if _is_file(row["name"], row) else None

    def read(self, key: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        """Parts of an object, fetched side by side."""
        begins, ends = [begin for begin, _ in ranges], [end for _, end in ranges]
        paths = [f"{self.bucket}/{key}"] * len(ranges)
        return list(self._call("read", key, self._fs.cat_ranges, paths, begins, ends, on_error="raise"))

    def read_part(self, wanted: Object, begin: int, end: int) -> bytes:
        """Part of an object as it was when it was found; an error if it is another one now."""
        for attempt in range(1, self._kind.tries + 1):
            try:
                content, mark = self._marked_part(wanted, begin, end)
                break
            except AzureMLException:
                raise
            except Exception as error:
                if attempt == self._kind.tries or not _is_silence(error):
                    raise self._explained(error, "read", wanted.key) from None
            time.sleep(0.1 * 2**attempt)
        if mark.strip('"') != wanted.mark or len(content) != end - begin:
            raise self._changed(wanted.key)
        return content

    def open(self, key: str) -> Any:
        """A file to read from anywhere in the object."""
        return self._call("read", key, self._fs.open, f"{self.bucket}/{check_path(key)}", "rb")

    def put(self, path: str, key: str, overwrite: bool) -> bool:
        """Store a file, whole or not at all. False if it was there already and stays."""
        if not overwrite and self.info(key) is not None:
            return False
        self._call("written", None, self._fs.put_file, path, f"{self.bucket}/{check_path(key)}")
        return True

    def _marked_part(self, wanted: Object, begin: int, end: int) -> tuple[bytes, str]:
        if self._kind.part is None:  # what has the same mark afterwards had it meanwhile
            (content,) = self.read(wanted.key, [(begin, end)])
            now = self.info(wanted.key)
            return content, now.mark if now else ""
        from fsspec.asyn import sync

        found: tuple[bytes, str] = sync(
            self._fs.loop, self._kind.part, self._fs, self.bucket, wanted.key, begin, end, wanted.mark
        )
        return found

    def _changed(self, key: str) -> UserErrorException:
        return UserErrorException(f"{self._shown}: {key!r} changed while it was read. Nothing was kept of the new one.")

    def _object(self, name: str, row: Mapping[str, Any]) -> Object:
        changed = row.get("last_modified") or row.get("LastModified") or row.get("mtime")
        mark = str(row.get("etag") or row.get("ETag") or changed).strip('"')
        modified = changed.timestamp() if isinstance(changed, datetime) else None
        return Object(name[len(self.bucket) + 1 :], int(row["size"]), mark, modified)

    def _call(self, done: str, key: str | None, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except Exception as error:
            raise self._explained(error, done, key) from None

    def _explained(self, error: Exception, done: str, key: str | None) -> Exception:
        code = _code(error)
        if key is not None and isinstance(error, FileNotFoundError) and code not in _NO_CONTAINER:
            return NotFound(f"{self._shown} has no {key!r}.")
        if _is_refusal(error):
            return AuthenticationException(
                f"{self._shown} cannot be {done}: access is denied ({code}). The credentials are wrong, or do not "
                "allow it. Register the datastore again with overwrite=True and credentials that do."
            )
        if isinstance(error, FileNotFoundError) or code in _NO_CONTAINER or _status(error) == 404:
            return NotFound(f"{self._shown} cannot be {done}: there is no {self._kind.what} of that name.")
        if key is not None and _status(error) == 412:  # it was asked for on condition that it is what it was
            return self._changed(key)
        if _is_silence(error):
            return self._unreachable(code)
        return UserErrorException(f"{self._shown} cannot be {done}: the store answered {code}.")

    def _check_addresses(self, access: Mapping[str, Any]) -> None:
        """That the settings let us ask there. What a name leads to later is watched where errands are done."""
        import socket

        rule = rule_of(os.environ)
        for host in hosts_of(access):
            try:
                found = socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)
            except OSError:
                reason = refusal(rule, host)  # nobody answers there, or a proxy knows the name
            else:
                reason = refusal(rule, host, [str(each[4][0]) for each in found])
            if reason is not None:
                raise UserErrorException(f"{self._shown} cannot be used: {reason}.")

    def _reach(self) -> None:
        """Nobody there is found out now: the libraries would try for minutes."""
        import socket
        from urllib.request import getproxies

        parts = urlsplit(self.endpoint)
        if getproxies().get(parts.scheme):
            return  # the way leads through a proxy, which only the libraries know how to ask
        try:
            port = parts.port or _PORTS[parts.scheme]
            socket.create_connection((parts.hostname or "", port), REACH_SECONDS).close()
        except (OSError, ValueError) as error:
            raise self._unreachable(getattr(error, "strerror", None) or str(error)) from None

    def _unreachable(self, reason: str) -> UserErrorException:
        return UserErrorException(
            f"{self._shown} cannot be reached: nobody answers at {self.endpoint} ({reason}). Is the endpoint right, "
            "and does the network lead there?"
        )


def _azure(access: Mapping[str, Any]) -> Any:
    from adlfs import AzureBlobFileSystem

    options, secret = access["options"], access["credentials"]
    if secret.get("client_secret"):
        from azure.identity.aio import ClientSecretCredential

        where = {"authority": urlsplit(options["authority_url"]).netloc} if options.get("authority_url") else {}
        credential = ClientSecretCredential(
            options["tenant_id"], options["client_id"], secret["client_secret"], **where
        )
        host = urlsplit(endpoint_of(access))
        return AzureBlobFileSystem(
            options["account_name"], account_host=host.netloc + host.path, credential=credential, **_NO_CACHE
        )
    # a connection string goes before every AZURE_STORAGE_* variable that the process may have
    words = {"AccountName": options["account_name"], "BlobEndpoint": endpoint_of(access)}
    if secret.get("account_key"):
        words["AccountKey"] = secret["account_key"]
    if secret.get("sas_token"):
        words["SharedAccessSignature"] = secret["sas_token"].lstrip("?")
    text = ";".join(f"{name}={value}" for name, value in words.items())
    return AzureBlobFileSystem(connection_string=text, anon=True, read_timeout=READ_SECONDS, **_NO_CACHE)


def _s3(access: Mapping[str, Any]) -> Any:
    from s3fs import S3FileSystem

    options, secret = access["options"], access["credentials"]
    config: dict[str, Any] = {
        "connect_timeout": REACH_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"max_attempts": 4},
    }
    if options.get("endpoint"):  # servers that are not Amazon's know path style, and not the newest checksums
        config["s3"] = {"addressing_style": "path"}
        config["request_checksum_calculation"] = config["response_checksum_validation"] = "when_required"
    return S3FileSystem(
        anon=not secret.get("access_key"),
        key=secret.get("access_key"),
        secret=secret.get("secret_key"),
        endpoint_url=options.get("endpoint"),
        client_kwargs={"region_name": options["region"]} if options.get("region") else None,
        config_kwargs=config,
        **_NO_CACHE,
    )


async def _azure_part(fs: Any, bucket: str, key: str, begin: int, end: int, mark: str) -> tuple[bytes, str]:
    from azure.core import MatchConditions

    async with fs.service_client.get_blob_client(bucket, key) as client:
        only_if = {"etag": f'"{mark}"', "match_condition": MatchConditions.IfNotModified}
        stream = await client.download_blob(begin, end - begin, retry_total=0, **only_if)
        return await stream.readall(), str(stream.properties.etag)


async def _s3_part(fs: Any, bucket: str, key: str, begin: int, end: int, mark: str) -> tuple[bytes, str]:
    only_if = {"Range": f"bytes={begin}-{end - 1}", "IfMatch": f'"{mark}"'}
    reply = await fs._call_s3("get_object", Bucket=bucket, Key=key, **only_if)
    async with reply["Body"] as body:
        return await body.read(), str(reply["ETag"])


def _gcs(access: Mapping[str, Any]) -> Any:
    import json

    from gcsfs import GCSFileSystem

    options, secret = access["options"], access["credentials"]
    token = json.loads(secret["service_account"]) if secret.get("service_account") else "anon"
    return GCSFileSystem(project=options.get("project"), token=token, endpoint_url=options.get("endpoint"), **_NO_CACHE)


def _share(access: Mapping[str, Any]) -> Any:
    import smbprotocol  # noqa: F401 - so that who lacks it is told the package's name, not that of a module in it

    from lapis.object_stores.shares import ShareFileSystem

    options, secret, server = access["options"], access["credentials"], urlsplit(endpoint_of(access))
    if "account_name" in options:  # of Azure, where the account is a user
        user, password = "AZURE\\" + options["account_name"], secret["account_key"]
    else:
        user, password = options["user"], secret["password"]
    encrypt = options.get("protocol") != "http" and options.get("encrypt") != "no"
    return ShareFileSystem(
        str(server.hostname), server.port or _PORTS["smb"], user, password, encrypt, timeout=REACH_SECONDS
    )


_NO_CACHE: dict[str, Any] = {"skip_instance_cache": True, "use_listings_cache": False}

KINDS = {
    "az": Kind("adlfs", "azure", "container", _azure, _azure_part, tries=4),
    "s3": Kind("s3fs", "s3", "bucket", _s3, _s3_part),
    "gs": Kind("gcsfs", "gcs", "bucket", _gcs),
    "smb": Kind("smbprotocol", "smb", "share", _share, tries=4, made_by="a share is made on its server"),
}


def _is_file(name: str, row: Mapping[str, Any]) -> bool:
    return row.get("type") == "file" and not name.endswith("/")  # some tools mark folders with empty objects


# The libraries' classes and codes, by name: they are not imported before they are needed.
_REFUSALS = {
    "AccessDenied", "AuthenticationFailed", "AuthorizationFailure", "AuthorizationPermissionMismatch",
    "AzureSigningError", "ClientAuthenticationError", "InvalidAccessKeyId", "NoAuthenticationInformation",
    "NoCredentialsError", "STATUS_ACCESS_DENIED", "STATUS_ACCOUNT_DISABLED", "STATUS_ACCOUNT_LOCKED_OUT",
    "STATUS_ACCOUNT_RESTRICTION", "STATUS_LOGON_FAILURE", "STATUS_PASSWORD_EXPIRED", "STATUS_WRONG_PASSWORD",
    "SignatureDoesNotMatch", "UnsupportedAlgorithm",
}  # fmt: skip
_NO_CONTAINER = {"ContainerNotFound", "NoSuchBucket", "ContainerBeingDeleted", "STATUS_BAD_NETWORK_NAME"}
_NO_ANSWER = {
    "ClientConnectorError", "ConnectTimeoutError", "ConnectionClosedError", "EndpointConnectionError", "FSTimeoutError",
    "ReadTimeoutError", "ServerDisconnectedError", "ServiceRequestError", "ServiceResponseError",
}  # fmt: skip


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _is_silence(error: BaseException) -> bool:
    return type(error).__name__ in _NO_ANSWER or isinstance(error, (ConnectionError, TimeoutError))


def _is_refusal(error: BaseException) -> bool:
    if isinstance(error, PermissionError) or _status(error) in (401, 403):
        return True
    return _code(error) in _REFUSALS or type(error).__name__ in _REFUSALS


def _status(error: BaseException) -> int | None:
    for each in _chain(error):
        status = getattr(each, "status_code", None) or _answer(each).get("ResponseMetadata", {}).get("HTTPStatusCode")
        if status is not None:
            return int(status)
    return None


def _code(error: BaseException) -> str:
    """The store's own word for what went wrong, else the class of the error."""
    for each in _chain(error):
        code = getattr(each, "error_code", None) or _answer(each).get("Error", {}).get("Code")
        if code:
            return str(getattr(code, "value", code))
    return type(error).__name__


def _answer(error: BaseException) -> Mapping[str, Any]:
    found = getattr(error, "response", None)  # botocore gives a dict, azure an object
    return found if isinstance(found, dict) else {}
