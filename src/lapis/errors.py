"""Every deliberate error, in one tree: Azure's exceptions, and below them the finer ones that Lapis raises.

    Exception
    ├── AzureMLException
    │   ├── UserErrorException          what was asked for is wrong
    │   │   ├── AuthenticationException     the token is missing or wrong
    │   │   │   ├── Forbidden                   the token is right, its scope is too small
    │   │   │   └── TokenEnded                  the token was a run's, and the run has ended
    │   │   ├── NotFound                    nothing of that name or id
    │   │   ├── Conflict                    it exists already, or its state forbids the call
    │   │   ├── TooLarge                    more bytes than are taken
    │   │   ├── InvalidPipeline             a pipeline cannot be as it was built; a ValueError too, as in SDK v1
    │   │   └── NotThereYet                 a call of SDK v1 that Lapis does not have yet
    │   ├── ActivityFailedException     a run that was waited for did not complete
    │   ├── HyperDriveException         a hyperparameter search cannot be as it was described
    │   ├── ComputeTargetException, SnapshotException, WorkspaceException, ...
    │   ├── StorageFull                 the server's disk is full
    │   └── Busy                        as much of this kind of work as can be done at once is under way
    └── ServiceException                the server did not answer, or answered with a fault of its own

An error crosses the wire as its `code` and becomes the same class on the other side; `status` is its HTTP status.
"""

from __future__ import annotations

from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class AzureMLException(Exception):
    """The root of SDK v1's exceptions. Prints as several lines, as scripts that search the text expect."""

    code = "AzureMLException"
    status = 500

    def __init__(
        self,
        exception_message: Any = "",
        inner_exception: BaseException | None = None,
        target: Any = None,
        details: Any = None,
        message_format: str | None = None,
        message_parameters: Any = None,
        reference_code: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(exception_message)
        self._exception_message = exception_message
        self._inner_exception = inner_exception
        self.target = target
        self.details = details
        self.message_format = message_format
        self.message_parameters = message_parameters
        self.reference_code = reference_code

    @property
    def message(self) -> str:
        return str(self._exception_message)

    @message.setter
    def message(self, value: Any) -> None:
        self._exception_message = value

    @property
    def inner_exception(self) -> BaseException | None:
        return self._inner_exception

    @inner_exception.setter
    def inner_exception(self, value: BaseException | None) -> None:
        self._inner_exception = value

    def print_stacktrace(self) -> None:
        import traceback  # late: it is slow to import, and rarely needed

        traceback.print_exception(type(self), self, self.__traceback__)

    def _error_response(self) -> dict[str, Any]:
        return {"error": {"message": self.message}}

    def __str__(self) -> str:
        import json

        response = json.dumps(self._error_response(), indent=4)
        inner = self._inner_exception
        head = f"{azure_name(type(self))}:\n\tMessage: {self.message}\n\tInnerException {inner}"
        return f"{head}\n\tErrorResponse \n{response}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r})"


class UserErrorException(AzureMLException):
    code = "UserError"
    status = 400

    def _error_response(self) -> dict[str, Any]:
        return {"error": {"code": "UserError", "message": self.message}}


class AuthenticationException(UserErrorException):
    code = "Authentication"
    status = 401


class Forbidden(AuthenticationException):
    code = "Forbidden"
    status = 403


class TokenEnded(AuthenticationException):
    code = "TokenEnded"


class NotFound(UserErrorException):
    code = "NotFound"
    status = 404


class Conflict(UserErrorException):
    code = "Conflict"
    status = 409


class TooLarge(UserErrorException):
    code = "TooLarge"
    status = 413


class InvalidPipeline(UserErrorException, ValueError):
    """SDK v1 raises a plain ValueError."""

    code = "InvalidPipeline"


class NotThereYet(UserErrorException, NotImplementedError):
    """A call of SDK v1 that this release of Lapis does not have. Says which, never does half of it."""

    code = "NotThereYet"
    status = 501

    def __init__(self, call: Any = "", instead: str = "", **kwargs: Any) -> None:
        message = str(call)
        if message and " " not in message:
            message = f"{message} is not there yet in this release of Lapis."
        super().__init__(f"{message} {instead}".strip(), **kwargs)


class ActivityFailedException(AzureMLException):
    code = "ActivityFailed"
    status = 409
    summary: str | None = None  # one line, where the message is the log of a failed run

    def __init__(self, error_details: Any = "", **kwargs: Any) -> None:
        super().__init__(error_details, **kwargs)
        self.error_details = error_details

    def _error_response(self) -> dict[str, Any]:
        return {"error": {"message": self.summary or self.message}}


class ComputeTargetException(AzureMLException):
    code = "ComputeTarget"
    status = 400


class ExperimentExecutionException(AzureMLException):
    code = "ExperimentExecution"
    status = 400


class RunConfigurationException(AzureMLException):
    code = "RunConfiguration"
    status = 400


class RunEnvironmentException(AzureMLException):
    code = "RunEnvironment"
    status = 400

    def __init__(self, exception_message: Any = "", **kwargs: Any) -> None:
        super().__init__(
            exception_message or "This process does not run inside a submitted run, so it has no run context.",
            **kwargs,
        )


class SnapshotException(AzureMLException):
    code = "Snapshot"
    status = 400


class TrainingException(AzureMLException):
    code = "Training"
    status = 400


class WorkspaceException(AzureMLException):
    code = "Workspace"
    status = 404
    found_multiple: bool

    def __init__(self, exception_message: Any = "", found_multiple: bool = False, **kwargs: Any) -> None:
        super().__init__(exception_message, **kwargs)
        self.found_multiple = found_multiple


class WorkspacePrivateEndpointException(WorkspaceException):
    code = "WorkspacePrivateEndpoint"


class ProjectSystemException(AzureMLException):
    code = "ProjectSystem"
    status = 400


class WebserviceException(AzureMLException):
    code = "Webservice"
    status = 400
    status_code: int | None

    def __init__(
        self, exception_message: Any = "", status_code: int | None = None, logger: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(exception_message, **kwargs)
        self.status_code = status_code


class ModelNotFoundException(WebserviceException):  # under which older releases of SDK v1 raised it
    code = "ModelNotFound"
    status = 404

    def __init__(self, exception_message: Any = "", logger: Any = None, **kwargs: Any) -> None:
        super().__init__(exception_message, status_code=404, logger=logger, **kwargs)


class ModelPathNotFoundException(ModelNotFoundException):
    code = "ModelPathNotFound"


class DatasetTimestampMissingError(AzureMLException):
    code = "DatasetTimestampMissing"
    status = 400

    def __init__(self, error_details: Any = "", **kwargs: Any) -> None:
        super().__init__(error_details, **kwargs)


class DatasetValidationError(UserErrorException):
    """What a new dataset names cannot be read as it says."""

    code = "DatasetValidation"

    def __init__(self, message: Any = "", exception: BaseException | None = None, **kwargs: Any) -> None:
        super().__init__(message, exception, **kwargs)


class DatasetExecutionError(UserErrorException):
    """A dataset was being read, and something in it did not fit."""

    code = "DatasetExecution"

    def __init__(self, message: Any = "", exception: BaseException | None = None, **kwargs: Any) -> None:
        super().__init__(message, exception, **kwargs)


class HyperDriveException(AzureMLException):
    code = "HyperDrive"
    status = 400

    @property
    def error_code(self) -> str:
        return self.code


class HyperDriveConfigException(HyperDriveException):
    code = "HyperDriveConfig"


class HyperDriveScenarioNotSupportedException(HyperDriveConfigException):
    code = "HyperDriveScenarioNotSupported"


class HyperDriveNotImplementedException(HyperDriveScenarioNotSupportedException):
    code = "HyperDriveNotImplemented"


class HyperDriveServiceException(HyperDriveException):
    code = "HyperDriveService"
    status = 500


class HyperDriveRehydrateException(HyperDriveException):
    code = "HyperDriveRehydrate"


class DiscoveryUrlNotFoundException(AzureMLException):
    code = "DiscoveryUrlNotFound"
    status = 404

    def __init__(self, discovery_key: Any = "", **kwargs: Any) -> None:
        super().__init__(f"No service address is known for '{discovery_key}'.", **kwargs)


class ParallelRunException(AzureMLException):
    code = "ParallelRun"
    status = 400
    delay_seconds: float

    def __init__(self, exception_message: Any = "", code: Any = None, delay_seconds: float = 0, **kwargs: Any) -> None:
        super().__init__(exception_message, **kwargs)
        self.delay_seconds = delay_seconds


class AzureMLAggregatedException(AzureMLException):
    code = "Aggregated"

    def __init__(self, exceptions_list: Any = (), **kwargs: Any) -> None:
        self.exceptions = list(exceptions_list) if not isinstance(exceptions_list, str) else [exceptions_list]
        super().__init__("\n".join(str(error) for error in self.exceptions), **kwargs)


class StorageFull(AzureMLException):
    code = "StorageFull"
    status = 507


class Busy(AzureMLException):
    """Nothing was changed, and the same call works in a while."""

    code = "Busy"
    status = 503


class ServiceException(Exception):
    """The server did not answer, or answered with a fault of its own. Not an AzureMLException, as in SDK v1."""

    code = "Service"
    status = 500
    status_code: int | None
    details: Any

    def __init__(self, error_response_exception: Any = "", **kwargs: Any) -> None:
        super().__init__(str(error_response_exception))
        self.status_code = kwargs.pop("status_code", None)
        self.details = kwargs.pop("details", None)
        self._inner = error_response_exception if isinstance(error_response_exception, BaseException) else None

    @property
    def message(self) -> str:
        return str(self.args[0])

    @property
    def inner_exception(self) -> BaseException | None:
        return self._inner

    def print_stacktrace(self) -> None:
        import traceback  # late: it is slow to import, and rarely needed

        traceback.print_exception(type(self), self, self.__traceback__)


class Unavailable(ServiceException):
    """No server answered at all: nothing was changed, and the same call may work later."""

    code = "Unavailable"
    status = 503


def azure_name(cls: type) -> str:
    """The name of the SDK v1 exception that users know this error by."""
    return next(c.__name__ for c in cls.__mro__ if c.__module__.startswith("azureml."))


def _descendants(root: type) -> list[type]:
    children: list[type] = root.__subclasses__()
    return [root] + [cls for child in children for cls in _descendants(child)]


_OURS = {
    Forbidden,
    TokenEnded,
    NotFound,
    Conflict,
    TooLarge,
    InvalidPipeline,
    NotThereYet,
    StorageFull,
    Busy,
    Unavailable,
}
_ALL = [cls for root in (AzureMLException, ServiceException) for cls in _descendants(root)]
for _cls in _ALL:
    if _cls not in _OURS:
        _cls.__module__ = "azureml.exceptions"  # where SDK v1 users import it from, and what a traceback shows
for _cls in (DatasetValidationError, DatasetExecutionError):
    _cls.__module__ = "azureml.data.dataset_error_handling"
for _cls in _descendants(HyperDriveException):
    _cls.__module__ = "azureml.train.hyperdrive.exceptions"
BY_CODE: dict[str, Any] = {vars(cls)["code"]: cls for cls in _ALL}


def to_wire(error: BaseException) -> dict[str, Any]:
    """The body of an error response."""
    body = {"code": getattr(error, "code", "Service"), "message": getattr(error, "message", str(error))}
    details = getattr(error, "details", None)
    return {"error": body if details is None else {**body, "details": details}}


def from_wire(body: Any, status: int) -> Exception:
    """The error that the other side raised, as the same class."""
    error = body.get("error", {}) if isinstance(body, dict) else {}
    cls = BY_CODE.get(error.get("code", ""))
    message = error.get("message") or f"The server answered with status {status}."
    if cls is None or issubclass(cls, ServiceException):
        return ServiceException(message, status_code=status)
    raised: Exception = cls(message, details=error["details"]) if error.get("details") else cls(message)
    return raised
