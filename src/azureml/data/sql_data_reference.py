"""The result of a query, made available to a run."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

SqlDataReference = _stand_in("azureml.data.sql_data_reference.SqlDataReference")
