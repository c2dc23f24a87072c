"""The words of SDK v1 for how a run fares, by name."""

from __future__ import annotations


class RunStatus:
    NOT_STARTED = "NotStarted"
    STARTING = "Starting"
    PROVISIONING = "Provisioning"
    PREPARING = "Preparing"
    QUEUED = "Queued"
    RUNNING = "Running"
    PAUSED = "Paused"
    FINALIZING = "Finalizing"
    CANCEL_REQUESTED = "CancelRequested"
    NOT_RESPONDING = "NotResponding"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELED = "Canceled"
    UNKNOWN = "Unknown"
    UNAPPROVED = "Unapproved"

    @classmethod
    def get_running_statuses(cls) -> list[str]:
        return list(RUNNING_STATES)

    @classmethod
    def get_post_processing_statuses(cls) -> list[str]:
        return list(POST_PROCESSING_STATES)


RUNNING_STATES = [
    RunStatus.NOT_STARTED,
    RunStatus.STARTING,
    RunStatus.PROVISIONING,
    RunStatus.PREPARING,
    RunStatus.QUEUED,
    RunStatus.RUNNING,
    RunStatus.PAUSED,
]
POST_PROCESSING_STATES = [RunStatus.FINALIZING]
TERMINAL_STATES = [RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELED]
