"""Work on a dataset that is done as a run."""

from lapis.sdk.later import stand_in as _stand_in

DatasetActionRun = _stand_in("azureml.data.dataset_action_run.DatasetActionRun")
