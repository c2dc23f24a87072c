"""Signing in, whichever way a script does it, gives the token of the Lapis server."""

import inspect
import time
from pathlib import Path
from typing import Any

import pytest

from azureml.core import authentication
from azureml.core.authentication import (
    AbstractAuthentication,
    ArmTokenAuthentication,
    Audience,
    AzureCliAuthentication,
    AzureMLTokenAuthentication,
    InteractiveLoginAuthentication,
    MsiAuthentication,
    ServicePrincipalAuthentication,
    TokenAuthentication,
)
from azureml.exceptions import AuthenticationException, UserErrorException

WAYS = {
    AbstractAuthentication: {},
    ArmTokenAuthentication: {"arm_access_token": "azure's"},
    AzureCliAuthentication: {},
    InteractiveLoginAuthentication: {"force": True, "tenant_id": "tenant"},
    MsiAuthentication: {"identity_config": {"client_id": "id"}},
    ServicePrincipalAuthentication: {
        "tenant_id": "tenant",
        "service_principal_id": "id",
        "service_principal_password": "password",
    },
    TokenAuthentication: {"get_token_for_audience": lambda audience: "azure's"},
}


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LAPIS_SERVER", "http://127.0.0.1:9")
    monkeypatch.setenv("LAPIS_TOKEN", "the-servers")
    return "the-servers"


@pytest.mark.parametrize(("way", "arguments"), WAYS.items())
def test_every_way_to_sign_in_sends_the_servers_token(way: Any, arguments: dict[str, Any], token: str) -> None:
    assert way(**arguments).get_authentication_header() == {"Authorization": f"Bearer {token}"}


def test_no_way_to_sign_in_is_left_out() -> None:
    classes = {value for value in vars(authentication).values() if inspect.isclass(value)}
    assert classes == {*WAYS, AzureMLTokenAuthentication, Audience, AuthenticationException}


@pytest.mark.parametrize(("way", "arguments"), WAYS.items())
def test_every_way_to_sign_in_names_a_cloud(way: Any, arguments: dict[str, Any]) -> None:
    assert way(**arguments)._cloud_type.name == "AzureCloud"
    assert way(**arguments, cloud="AzureChinaCloud")._cloud_type.name == "AzureChinaCloud"


def test_without_the_variable_the_token_is_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAPIS_TOKEN", raising=False)
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path))
    (tmp_path / "token").write_text("from-the-file\n")
    header = InteractiveLoginAuthentication().get_authentication_header()
    assert header == {"Authorization": "Bearer from-the-file"}


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_without_any_token_the_error_says_where_one_is_looked_for(
    content: "str | None", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAPIS_TOKEN", raising=False)
    monkeypatch.setenv("LAPIS_HOME", str(tmp_path))
    if content is not None:
        (tmp_path / "token").write_text(content)
    with pytest.raises(AuthenticationException) as caught:
        AzureCliAuthentication().get_authentication_header()
    assert str(tmp_path / "token") in caught.value.message
    assert "LAPIS_TOKEN" in caught.value.message


def test_get_token_gives_what_azure_clients_expect(token: str) -> None:
    got = AzureCliAuthentication().get_token("https://example.invalid/.default")
    assert got.token == token
    assert got.expires_on > time.time()


def test_a_function_of_tokens_is_asked_for_the_audience() -> None:
    auth = TokenAuthentication(lambda audience: f"for-{audience.value}")
    assert auth.get_token() == "for-ARM"
    assert auth.get_token(Audience.AZUREML) == "for-AZUREML"


def test_a_signed_session_sends_the_header_with_every_request(token: str) -> None:
    class Session:
        headers = {"Accept": "text/plain"}

    signed = AzureCliAuthentication().signed_session(Session())
    assert signed.headers == {"Accept": "text/plain", "Authorization": f"Bearer {token}"}


def test_the_credential_of_a_run_sends_its_own_token() -> None:
    auth = AzureMLTokenAuthentication.create("first", None, "host", "sub", "group", "ws", "exp", "run")
    assert auth.get_authentication_header() == {"Authorization": "Bearer first"}
    auth.set_token("second", 1700000000)
    assert (auth.token, auth.expiry_time) == ("second", 1700000000)
    assert auth.get_authentication_header() == {"Authorization": "Bearer second"}


@pytest.mark.parametrize(
    ("way", "arguments"),
    [
        (InteractiveLoginAuthentication, {"tenant_id": 7}),
        (InteractiveLoginAuthentication, {"force": "yes"}),
        (AzureCliAuthentication, {"cloud": 7}),
        (ServicePrincipalAuthentication, {**WAYS[ServicePrincipalAuthentication], "tenant_id": 7}),
        (ArmTokenAuthentication, {"arm_access_token": None}),
        (TokenAuthentication, {"get_token_for_audience": "azure's"}),
        (AzureMLTokenAuthentication, {"azureml_access_token": "token", "run_id": 7}),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(way: Any, arguments: dict[str, Any]) -> None:
    wrong = [name for name, value in arguments.items() if not isinstance(value, str) or value in ("yes", "azure's")]
    with pytest.raises(UserErrorException) as caught:
        way(**arguments)
    assert f"as {wrong[-1]}, not" in caught.value.message
    assert way.__name__ in caught.value.message
