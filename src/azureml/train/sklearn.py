"""The estimator for scikit-learn."""

from lapis.sdk.training.framework_estimators import SKLearn as SKLearn
