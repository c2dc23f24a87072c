"""What SDK v1 added to MLflow."""

from lapis.sdk.base.missing_names import stand_in as _stand_in

azureml_artifacts_builder = _stand_in("azureml.mlflow.azureml_artifacts_builder")
azureml_store_builder = _stand_in("azureml.mlflow.azureml_store_builder")
get_portal_url = _stand_in("azureml.mlflow.get_portal_url")
register_model = _stand_in("azureml.mlflow.register_model")
