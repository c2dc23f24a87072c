"""A step that searches for hyperparameters."""

from lapis.sdk.pipelines.search_step import HyperDriveStep as HyperDriveStep
from lapis.sdk.pipelines.search_step import HyperDriveStepRun as HyperDriveStepRun
