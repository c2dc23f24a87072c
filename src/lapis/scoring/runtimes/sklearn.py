"""Serves an estimator of scikit-learn, stored with joblib, pickle or dill: each of its methods is a signature."""

from __future__ import annotations

import warnings
from typing import Any

import joblib
import numpy

from lapis.errors import UserErrorException
from lapis.scoring.runtimes.ready import make_ready, only_file
from lapis.scoring.tensors import Arrays, BadRequest, Runtime, Tensor

ENDINGS = (".pkl", ".pickle", ".joblib", ".sav", ".dill")
# In the order in which they answer where no method is asked for, as Azure's services do.
_METHODS = ("predict_proba", "predict", "predict_log_proba", "decision_function", "transform", "score_samples")


def load(model: str, sample: str | None = None) -> Runtime:
    path = only_file(model, ENDINGS, "A scikit-learn model")
    runtime = _Estimator(_stored(path), path)
    make_ready(runtime, sample)
    return runtime


def _stored(path: str) -> Any:
    """joblib reads what pickle wrote too, and dill what dill wrote. Where neither can, joblib's reason is told."""
    try:
        return joblib.load(path)
    except Exception as problem:
        try:
            import dill

            with open(path, "rb") as file:
                return dill.load(file)
        except Exception:
            raise problem from None


class _Estimator(Runtime):
    platform = "sklearn"

    def __init__(self, estimator: Any, path: str) -> None:
        self.methods = [each for each in _METHODS if callable(getattr(estimator, each, None))]
        if not self.methods:
            raise UserErrorException(f"{path} holds {type(estimator).__name__}, which has no method to predict with.")
        features = getattr(estimator, "n_features_in_", None)
        shape = None if features is None else (None, int(features))
        signatures = {each: ([Tensor("data", "any", shape)], [Tensor(each, "any", None)]) for each in self.methods}
        super().__init__(signatures, self.methods[0])
        names = getattr(estimator, "feature_names_in_", None)
        self.columns: list[str] | None = None if names is None else [str(name) for name in names]
        self._estimator = estimator

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        data = inputs["data"]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a plain array has no feature names
                found = getattr(self._estimator, signature)(self._table(data) if self.columns else data)
        except (ValueError, TypeError) as error:
            raise BadRequest(f"The model refused the input: {error}") from None
        return {signature: found.toarray() if hasattr(found, "toarray") else numpy.asarray(found)}

    def _table(self, data: Any) -> Any:
        try:
            import pandas
        except ImportError:
            return data
        return pandas.DataFrame(data, columns=self.columns).infer_objects()
