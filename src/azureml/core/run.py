"""Runs, as seen from outside and from inside the script."""

from lapis.sdk.base.missing_names import stand_in as _stand_in
from lapis.sdk.runs.offline_run import _OfflineRun as _OfflineRun
from lapis.sdk.runs.run import Run as Run
from lapis.sdk.runs.run import get_run as get_run
from lapis.sdk.runs.run_status import POST_PROCESSING_STATES as POST_PROCESSING_STATES
from lapis.sdk.runs.run_status import RUNNING_STATES as RUNNING_STATES
from lapis.sdk.runs.run_status import RunStatus as RunStatus
from lapis.sdk.runs.submitted_run import InputDatasets as InputDatasets
from lapis.sdk.runs.submitted_run import OutputDatasets as OutputDatasets
from lapis.sdk.runs.submitted_run import _SubmittedRun as _SubmittedRun

LinkOutput = _stand_in("azureml.core.run.LinkOutput")
