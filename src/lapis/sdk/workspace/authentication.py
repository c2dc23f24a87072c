"""Ways to sign in, as SDK v1 names them. Here they all come down to one thing: the token of the Lapis server.

Tenants, principals, clouds and the like belong to Azure. They are accepted, so that a script runs unchanged;
their types are checked, and they are not used.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from lapis.client import http_client, local_server
from lapis.domain.settings import load
from lapis.errors import AuthenticationException, UserErrorException

if TYPE_CHECKING:
    from datetime import datetime

    import requests

    from lapis.client.http_client import Endpoint

_GOOD_FOR_SECONDS = 3600  # the server's token does not end; whoever keeps a copy asks again after this long


class Audience(Enum):
    """Who a token is for."""

    ARM = "ARM"
    AZUREML = "AZUREML"


class AccessToken(NamedTuple):
    """A token, and the Unix time at which to ask for another."""

    token: str
    expires_on: int


class Cloud(NamedTuple):
    name: str


class AbstractAuthentication:
    """What all ways to sign in have in common."""

    _endpoint: Endpoint | None = None  # of the workspace that it belongs to; None: of whatever server is configured

    def __init__(self, cloud: str | None = None) -> None:
        _check(self, "cloud", cloud, str)
        self._cloud_type = Cloud("AzureCloud" if cloud in (None, "None") else str(cloud))

    def get_authentication_header(self) -> dict[str, str]:
        """Return the HTTP header that the Lapis server asks for."""
        return {"Authorization": "Bearer " + self._bearer()}

    def get_token(self, *scopes: Any, **kwargs: Any) -> AccessToken:
        """Return the token as `azure.identity` credentials do. Scopes are not used: there is one token."""
        return AccessToken(self._bearer(), int(time.time()) + _GOOD_FOR_SECONDS)

    def signed_session(self, session: requests.Session | None = None) -> requests.Session:
        """Return `session`, or a new `requests.Session`, that sends the header with every request."""
        if session is None:
            session = _new_session()
        session.headers.update(self.get_authentication_header())
        return session

    def _bearer(self) -> str:
        return server_token() if self._endpoint is None else self._endpoint.find()[1]


class InteractiveLoginAuthentication(AbstractAuthentication):
    """The sign-in by browser. Nothing opens: the Lapis server's token is used."""

    def __init__(self, force: bool = False, tenant_id: str | None = None, cloud: str | None = None) -> None:
        super().__init__(cloud)
        _check(self, "force", force, bool)
        _check(self, "tenant_id", tenant_id, str)


class AzureCliAuthentication(AbstractAuthentication):
    """The sign-in of Azure's command line. It is not called: the Lapis server's token is used."""


class MsiAuthentication(AbstractAuthentication):
    """The identity of an Azure machine. It is not asked for: the Lapis server's token is used."""

    def __init__(self, cloud: str | None = None, **kwargs: Any) -> None:
        super().__init__(cloud)


class ServicePrincipalAuthentication(AbstractAuthentication):
    """A service principal. Its password is neither kept nor sent: the Lapis server's token is used."""

    def __init__(
        self,
        tenant_id: str,
        service_principal_id: str,
        service_principal_password: str,
        cloud: str = "AzureCloud",
    ) -> None:
        super().__init__(cloud)
        _check(self, "tenant_id", tenant_id, str)
        _check(self, "service_principal_id", service_principal_id, str)
        _check(self, "service_principal_password", service_principal_password, str)


class ArmTokenAuthentication(AbstractAuthentication):
    """A token of Azure's resource manager. It is kept and not sent: the Lapis server's token is used."""

    def __init__(self, arm_access_token: str, cloud: str = "None") -> None:
        super().__init__(cloud)
        self.update_arm_access_token(arm_access_token)

    def update_arm_access_token(self, new_arm_access_token: str) -> None:
        _check(self, "arm_access_token", new_arm_access_token, str, needed=True)
        self._arm_access_token = new_arm_access_token


class TokenAuthentication(AbstractAuthentication):
    """A function that gives tokens. `get_token` calls it; towards the Lapis server its own token is used."""

    def __init__(self, get_token_for_audience: Callable[[Audience], str], cloud: str | None = None) -> None:
        super().__init__(cloud)
        if not callable(get_token_for_audience):
            raise UserErrorException(
                "TokenAuthentication takes a function of one argument, the audience, "
                f"as get_token_for_audience, not {get_token_for_audience!r}."
            )
        self._get_token_for_audience = get_token_for_audience

    def get_token(  # type: ignore[override]  # SDK v1's own signature
        self, audience: Audience = Audience.ARM, *scopes: Any, **kwargs: Any
    ) -> str:
        """Return what the given function returns for `audience`."""
        return self._get_token_for_audience(audience)


class AzureMLTokenAuthentication(AbstractAuthentication):
    """The credential of a run. The one class that sends the token it was given."""

    EXPIRATION_THRESHOLD_IN_SECONDS = 95
    REFRESH_INTERVAL_IN_SECONDS = 30

    def __init__(
        self,
        azureml_access_token: str,
        expiry_time: datetime | None = None,
        host: str | None = None,
        subscription_id: str | None = None,
        resource_group_name: str | None = None,
        workspace_name: str | None = None,
        experiment_name: str | None = None,
        run_id: str | None = None,
        user_email: str | None = None,
        experiment_id: str | None = None,
        cloud: str = "AzureCloud",
    ) -> None:
        super().__init__(cloud)
        texts = {
            "host": host,
            "subscription_id": subscription_id,
            "resource_group_name": resource_group_name,
            "workspace_name": workspace_name,
            "experiment_name": experiment_name,
            "run_id": run_id,
            "user_email": user_email,
            "experiment_id": experiment_id,
        }
        for name, value in texts.items():
            _check(self, name, value, str)
        self.set_token(azureml_access_token, expiry_time)

    @classmethod
    def create(
        cls,
        azureml_access_token: str,
        expiry_time: datetime | None,
        host: str,
        subscription_id: str,
        resource_group_name: str,
        workspace_name: str,
        experiment_name: str,
        run_id: str,
        user_email: str | None = None,
        experiment_id: str | None = None,
    ) -> AzureMLTokenAuthentication:
        return cls(
            azureml_access_token,
            expiry_time,
            host,
            subscription_id,
            resource_group_name,
            workspace_name,
            experiment_name,
            run_id,
            user_email,
            experiment_id,
        )

    @property
    def token(self) -> str:
        return self._token

    @property
    def expiry_time(self) -> datetime | None:
        return self._expiry_time

    def set_token(self, token: str, expiry_time: datetime | None) -> None:
        _check(self, "token", token, str, needed=True)
        self._token, self._expiry_time = token, expiry_time

    def _bearer(self) -> str:
        return self._token


def server_token() -> str:
    """The token of the Lapis server: of a job its own, else of LAPIS_SERVER, else of the local server."""
    settings, job = load(), http_client.job_endpoint()
    if job is not None:
        return job.token
    if settings.server:
        return local_server.endpoint_at(settings, settings.server).find()[1]
    try:
        with open(settings.token_file, encoding="utf-8") as file:
            token = file.read().strip()
    except OSError:
        token = ""
    if token:
        return token
    raise AuthenticationException(
        f"No token for the Lapis server: there is none in {settings.token_file}. Workspace.from_config() starts the "
        "local server, which writes that file; for another server set LAPIS_SERVER and LAPIS_TOKEN, or `lapis login`."
    )


def _check(owner: Any, name: str, value: Any, kind: type, needed: bool = False) -> None:
    if isinstance(value, kind) or (value is None and not needed):
        return
    wanted = {str: "text", bool: "True or False"}[kind]
    raise UserErrorException(f"{type(owner).__name__} takes {wanted} as {name}, not {type(value).__name__}.")


def _new_session() -> requests.Session:
    try:
        import requests
    except ImportError as error:
        raise UserErrorException(
            "signed_session needs the package 'requests': pip install requests, or pass your own session."
        ) from error
    return requests.Session()
