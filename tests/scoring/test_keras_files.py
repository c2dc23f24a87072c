"""A Keras file that holds code is not loaded, whatever Keras would do with it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from azureml.exceptions import UserErrorException
from lapis.scoring.runtimes import keras_files


def layer(kind: str, module: str | None = "keras.layers", **config: Any) -> dict[str, Any]:
    return {"module": module, "class_name": kind, "config": config}


def saved(folder: Path, *layers: dict[str, Any]) -> str:
    with zipfile.ZipFile(folder / "model.keras", "w") as archive:
        archive.writestr("config.json", json.dumps(layer("Sequential", "keras", layers=list(layers))))
    return str(folder / "model.keras")


@pytest.mark.parametrize(
    "code, named",
    [
        (layer("Lambda", function={"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}), "a Lambda layer"),
        (layer("Lambda", None, function=["4wEAAA==", None, None]), "a Lambda layer"),
        (layer("Dense", activation={"class_name": "__lambda__", "config": {}}), "a Lambda layer"),
        (layer("system", "os"), "system of os"),
        (layer("function", "keras.src.utils.file_utils", config="get_file"), "function of keras.src.utils.file_utils"),
        (layer("Mine", "kerasaurus"), "Mine of kerasaurus"),
    ],
)
def test_a_file_with_code_is_refused_with_what_may_be_done(code: dict[str, Any], named: str, tmp_path: Path) -> None:
    with pytest.raises(UserErrorException, match=f"model.keras holds code .{named}.*entry script.*safe_mode=False"):
        keras_files.check(saved(tmp_path, layer("Dense", units=1), code))


def test_layers_of_keras_are_loaded_and_so_is_code_that_the_user_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keras_files.check(saved(tmp_path, layer("Dense", activation="relu"), layer("TFOpLambda", None)))
    monkeypatch.setenv("LAPIS_KERAS_SAFE_MODE", "0")
    keras_files.check(saved(tmp_path, layer("Lambda")))
