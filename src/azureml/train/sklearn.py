"""The estimator for scikit-learn."""

from lapis.sdk.later import stand_in as _stand_in

SKLearn = _stand_in("azureml.train.sklearn.SKLearn")
