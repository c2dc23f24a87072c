"""The estimator for scikit-learn."""

from lapis.sdk.framework_estimators import SKLearn as SKLearn
