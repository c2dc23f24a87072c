"""Where an object store answers, and what cannot be registered as one."""

from __future__ import annotations

from typing import Any

import pytest

from lapis.domain.object_store import check_object_store, credential_type, endpoint_of, shown
from lapis.errors import UserErrorException


def azure(**options: str) -> dict[str, Any]:
    return {"type": "AzureBlob", "url": "az://data", "options": {"account_name": "acc", **options}, "credentials": {}}


def s3(**options: str) -> dict[str, Any]:
    return {"type": "AmazonS3", "url": "s3://data", "options": options, "credentials": {}}


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, "https://acc.blob.core.windows.net"),
        ({"endpoint": "core.chinacloudapi.cn"}, "https://acc.blob.core.chinacloudapi.cn"),
        ({"protocol": "http", "endpoint": "127.0.0.1:10000"}, "http://127.0.0.1:10000/acc"),
        ({"protocol": "http", "endpoint": "localhost:10000"}, "http://localhost:10000/acc"),
        ({"endpoint": "https://blobs.example/acc/"}, "https://blobs.example/acc"),
    ],
)
def test_an_azure_endpoint_is_a_domain_an_address_or_a_whole_url(options: dict[str, str], address: str) -> None:
    assert endpoint_of(azure(**options)) == address
    check_object_store(azure(**options))


def test_s3_answers_at_its_endpoint_or_at_amazons_of_the_region() -> None:
    assert endpoint_of(s3()) == "https://s3.amazonaws.com"
    assert endpoint_of(s3(region="eu-west-1")) == "https://s3.eu-west-1.amazonaws.com"
    assert endpoint_of(s3(endpoint="http://minio:9000/", region="x")) == "http://minio:9000"


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        (None, "smb://acc.file.core.windows.net"),
        ("core.chinacloudapi.cn", "smb://acc.file.core.chinacloudapi.cn"),
        ("127.0.0.1", "smb://127.0.0.1"),
        ("nas.lab.lan:445", "smb://nas.lab.lan:445"),
        ("smb://nas.lab.lan", "smb://nas.lab.lan"),
    ],
)
def test_a_share_lies_at_azure_or_at_a_server_of_your_own(endpoint: str, address: str) -> None:
    options = {"account_name": "acc", **({"endpoint": endpoint} if endpoint else {})}
    view = {"type": "AzureFile", "url": "smb://team$", "options": options, "credentials": {"account_key": "k"}}
    check_object_store(view)
    assert endpoint_of(view) == address


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"credentials": {}}, "needs password"),
        ({"options": {"endpoint": "nas"}}, "needs user"),
        ({"options": {"user": "ann"}}, "host of the share is needed"),
        ({"options": {"user": "ann", "endpoint": "nas\\x"}}, "not an address"),
        ({"options": {"user": "ann", "endpoint": "ann:pw@nas"}}, "not an address"),
        ({"options": {"user": "ann", "endpoint": "nas:port"}}, "not an address"),
        ({"url": "smb://a/b"}, "'a/b' is not the name of a share"),
        ({"url": "smb://a#b"}, "'a#b' is not the name of a share"),
    ],
)
def test_a_share_that_cannot_be_used_is_refused(wrong: dict[str, Any], message: str) -> None:
    options = {"user": "LAB\\\\ann", "endpoint": "nas"}
    view = {"type": "SmbShare", "url": "smb://photos", "options": options, "credentials": {"password": "p"}}
    check_object_store(view)
    with pytest.raises(UserErrorException, match=message):
        check_object_store({**view, **wrong})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"type": "AzureFile"}, "cannot lie at"),
        ({"url": "s3://data"}, "cannot lie at"),
        ({"url": "az://data/folder"}, "not the name of a container"),
        ({"url": "az://"}, "not the name of a container"),
        ({"url": "az://user:pw@data"}, "not the name of a container"),
        ({"options": {"account_name": "Not An Account"}}, "account_name 'Not An Account' is none"),
        ({"options": {}}, "account_name None is none"),
        ({"options": {"account_name": "acc", "region": "x"}}, "has no region"),
        ({"credentials": {"secret_key": "x"}}, "has no secret_key"),
        ({"credentials": {"account_key": ""}}, "account_key must be text on one line"),
        ({"credentials": {"account_key": "a\nb"}}, "account_key must be text on one line"),
        ({"credentials": {"account_key": "k;BlobEndpoint=http://elsewhere"}}, "holds a ';'"),
        ({"options": {"account_name": "acc", "endpoint": "http://u:p@host"}}, "not an address"),
        ({"options": {"account_name": "acc", "protocol": "file"}}, "not an address"),
    ],
)
def test_what_cannot_be_used_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UserErrorException, match=message) as caught:
        check_object_store({**azure(), **wrong})
    assert "BlobEndpoint" not in caught.value.message  # a credential is not quoted


def test_half_a_pair_of_keys_is_refused() -> None:
    with pytest.raises(UserErrorException, match="given together"):
        check_object_store({**s3(), "credentials": {"access_key": "x"}})


def test_what_is_shown_of_a_store_holds_no_credential() -> None:
    view = {**azure(), "credentials": {"sas_token": "sig=secret"}}
    assert credential_type(view) == "Sas"
    assert shown(view) == "az://data at https://acc.blob.core.windows.net"
