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
