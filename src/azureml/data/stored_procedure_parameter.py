"""Parameters of a stored procedure."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

StoredProcedureParameter = _stand_in("azureml.data.stored_procedure_parameter.StoredProcedureParameter")
StoredProcedureParameterType = _stand_in("azureml.data.stored_procedure_parameter.StoredProcedureParameterType")
