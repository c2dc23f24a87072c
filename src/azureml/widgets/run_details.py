"""A run, shown in a notebook."""

from lapis.sdk.later import stand_in as _stand_in

RunDetails = _stand_in("azureml.widgets.RunDetails")
