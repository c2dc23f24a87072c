"""Estimators of scikit-learn, old and new, are served as they were pickled. Heavy: the packages are installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lapis.environments.build import build
from lapis.environments.no_code import no_code
from tests.serving.test_conversion import lock_of, root, run

__all__ = ["root"]  # a fixture

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("frameworks")]

MAKE = """
import sys
import dill, joblib, numpy, pandas
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
folder = sys.argv[1]
x, y = load_iris(return_X_y=True)
joblib.dump(LogisticRegression(max_iter=1000).fit(x, y), folder + "/iris.pkl")
joblib.dump(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), folder + "/line.joblib")
joblib.dump(LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0]), folder + "/packed.joblib", compress=3)
twice = FunctionTransformer(lambda rows: rows * 2)
with open(folder + "/twice.dill", "wb") as file:
    dill.dump(make_pipeline(twice, LinearRegression()).fit(numpy.array([[0.0], [1.0]]), [1.0, 3.0]), file)
table = pandas.DataFrame({"town": ["Rome", "Oslo", "Rome", "Oslo"], "age": [1, 2, 3, 4]})
encoded = ColumnTransformer([("town", OneHotEncoder(), ["town"])], remainder="passthrough")
joblib.dump(make_pipeline(encoded, LinearRegression()).fit(table, [10.0, 20.0, 12.0, 22.0]), folder + "/towns.pkl")
"""
ASK = """
import json, sys
from lapis.scoring import request_formats
from lapis.scoring.runtimes import sklearn
runtime = sklearn.load(sys.argv[1])
for body in json.load(sys.stdin):
    try:
        request = request_formats.parse(json.dumps(body).encode(), None, runtime)
        print(request_formats.render(request, runtime.run(request.signature, request.inputs)).decode())
    except request_formats.BadRequest as error:
        print(json.dumps({"refused": " ".join(error.message.split())}))
"""


@pytest.fixture(scope="module", params=["1.0.2", None], ids=lambda version: f"scikit-learn {version or 'newest'}")
def shop(request: Any, root: str, tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: F811
    lock = lock_of(no_code("ScikitLearn", request.param, ["model.pkl"])[1], root)
    python = os.path.join(build(lock, None, root, print), "bin", "python")
    folder = tmp_path_factory.mktemp("estimators")
    run(python, MAKE, str(folder))
    return python, folder


def ask(shop: Any, model: str, *bodies: Any) -> list[Any]:
    python, folder = shop
    said = run(python, ASK, str(Path(folder, model)), given=json.dumps(bodies))
    return [json.loads(line) for line in said.splitlines()]


def test_a_classifier_answers_with_probabilities_and_with_the_method_asked_for(shop: Any) -> None:
    row = [5.1, 3.5, 1.4, 0.2]
    likely, chosen, rows, narrow, words, hole = ask(
        shop, "iris.pkl", {"data": [row]}, {"data": [row, row], "method": "predict"}, {"instances": [row]},
        {"data": [[1, 2]]}, {"data": [["a", 2, 3, 4]]}, {"data": [[None, 2, 3, 4]]},
    )  # fmt: skip
    assert likely["predict_proba"][0][0] > 0.9 and chosen == {"predict": [0, 0]}
    assert rows["predictions"] == likely["predict_proba"]
    assert narrow["refused"].startswith("Input 'data' has shape [1, 2]. Expected input: 'data' (any, shape [any, 4]).")
    assert words["refused"].startswith("The model refused the input: could not convert string to float")
    assert "NaN" in hole["refused"]


def test_an_estimator_without_probabilities_predicts(shop: Any) -> None:
    (answer,) = ask(shop, "line.joblib", {"data": [[2.0], [3.0]]})
    assert answer["predict"] == pytest.approx([5.0, 7.0])


def test_a_pipeline_on_named_columns_gets_a_table(shop: Any) -> None:
    by_name, by_place, lacking = ask(
        shop, "towns.pkl", {"data": [{"age": 5, "town": "Rome"}]}, {"data": [["Rome", 5]]}, {"data": [{"age": 5}]}
    )
    assert by_name["predict"] == pytest.approx([14.0]) and by_place == by_name
    assert lacking["refused"] == "'town' is missing in a row. Expected: rows with the features town, age."


@pytest.mark.parametrize("model", ["packed.joblib", "twice.dill"])
def test_what_joblib_compressed_and_what_dill_stored_is_served_too(shop: Any, model: str) -> None:
    (answer,) = ask(shop, model, {"data": [[2.0]]})
    assert answer["predict"] == pytest.approx([5.0])
