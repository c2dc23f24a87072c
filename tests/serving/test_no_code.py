"""A model without a script, behind the front: the forms that clients speak, at every address that they know."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest

from tests.serving import models
from tests.serving.service import Service, ask, serving

WEIGHTS = numpy.eye(3, dtype="float32") * 4


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    model = models.linear(folder / "digits.onnx", WEIGHTS)
    load = {"runtime": "onnx", "model": str(model), "sample": None}
    with serving(folder, load=load, batch={"largest": 8, "wait_ms": 2}) as running:
        yield running


def best(rows: Any) -> list[int]:
    return [max(range(3), key=row.__getitem__) for row in rows]


def test_each_form_has_its_address_and_its_answer(service: Service) -> None:
    rows = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    assert best(service.ask({"instances": rows}).json["predictions"]) == [1, 0]
    assert best(service.ask({"instances": rows}, path="/v1/models/m:predict").json["predictions"]) == [1, 0]
    assert best(service.ask({"data": rows}).json["predict"]) == [1, 0]
    tensor = {"name": "pixels", "shape": [2, 3], "datatype": "FP32", "data": rows}
    told = service.ask({"inputs": [tensor]}, path="/v2/models/m/infer").json
    assert told["model_name"] == "m" and best(numpy.reshape(told["outputs"][0]["data"], (2, 3)).tolist()) == [1, 0]


def test_tensors_may_travel_as_bytes(service: Service) -> None:
    body = {"name": "pixels", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}
    head = b'{"inputs": [%s]}' % str(body).replace("'", '"').encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    answer = service.ask(head + struct.pack("<3f", 0, 0, 1), path="/v2/models/m/infer", headers=headers)
    assert answer.status == 200 and answer.json["outputs"][0]["shape"] == [1, 3]
    wrong = service.ask(head, path="/v2/models/m/infer", headers={**headers, "Inference-Header-Content-Length": "x"})
    assert wrong.status == 400


def test_a_wrong_body_names_the_input_that_is_expected(service: Service) -> None:
    answer = service.ask({"instances": [[1, 2]]})
    assert answer.status == 400 and "'pixels' (float32, shape [any, 3])" in answer.message
    assert service.ask(b"{").status == 400
    assert service.ask(b"[" * 100_000).status == 400
    assert service.ask(method="GET").status == 405


def test_the_model_is_described(service: Service) -> None:
    about = service.ask(path="/v2/models/m", method="GET").json
    assert about["inputs"] == [{"name": "pixels", "datatype": "FP32", "shape": [-1, 3]}]
    assert service.ask(path="/v2/models/m/ready", method="GET").status == 200
    status = service.ask(path="/v1/models/m", method="GET").json
    assert status["model_version_status"][0]["state"] == "AVAILABLE"


def test_requests_that_are_run_together_get_their_own_answers(service: Service) -> None:
    def be_a_client(client: int) -> list[tuple[int, int, int]]:
        wrong = []
        with service.connection() as connection:
            for number in range(25):
                asked = (client + number) % 3
                rows = [[4.0 if at == asked else 0.0 for at in range(3)]] * (1 + number % 2)
                if number == 7:
                    assert ask(connection, {"instances": [[1]]}).status == 400, "a bad one among them is on its own"
                told = best(ask(connection, {"instances": rows}).json["predictions"])
                if told != [asked] * len(rows):
                    wrong.append((client, number, asked))
        return wrong

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(be_a_client, range(12))) == [[]] * 12
