"""Work on a dataset that is done as a run."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

DatasetActionRun = _stand_in("azureml.data.dataset_action_run.DatasetActionRun")
