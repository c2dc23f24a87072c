"""Request bodies become arrays, and arrays become answers, in each of the forms that clients of such services speak.

| form | body | answer |
|---|---|---|
| TensorFlow Serving, rows | {"instances": [...]} | {"predictions": [...]} |
| TensorFlow Serving, columns | {"inputs": ...} | {"outputs": ...} |
| Azure's no-code services | {"data": ..., "method": "predict"} | {"predict": ...} |
| ONNX Runtime Server | {"inputs": {name: {"dims", "dataType", "rawData"}}} | {"outputs": {name: {...}}} |
| Open Inference Protocol | {"inputs": [{"name", "shape", "datatype", "data"}]}, or binary | {"outputs": [{...}]} |

Pure: nothing here runs a model.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any, Callable, NamedTuple, Sequence

import numpy

from lapis.scoring import number_rows
from lapis.scoring.tensors import Arrays, BadRequest, Runtime, Tensor

try:
    import orjson
except ImportError:  # an environment of the user's need not have it
    orjson = None

JSON = "application/json"
BINARY = "application/octet-stream"
HEADER_LENGTH = "Inference-Header-Content-Length"  # of the Open Inference Protocol's binary form


class Request(NamedTuple):
    signature: str
    inputs: Arrays
    rows: int  # along the first dimension; 0 where that does not mean rows
    answer_form: Callable[[Arrays], Answer]


class Answer(bytes):
    """A body, with the headers that belong to it."""

    headers: dict[str, str]


def parse(
    body: bytes, content_type: str | None, runtime: Runtime, header_length: int | None = None, model: str = ""
) -> Request:
    """What the body asks of the model. Raises BadRequest, which names the input that is expected.

    `header_length` is the request's Inference-Header-Content-Length, if it has one; `model` is the name in its address.
    """
    if "protobuf" in (content_type or "").lower():
        raise BadRequest(f"Content-Type {content_type} is not understood here. Send the same tensors as {JSON}.")
    if header_length is not None:
        return _of_binary(body, header_length, runtime, model)
    asked = _json(body, runtime)
    if isinstance(asked, list):
        asked = {"data": asked}
    if not isinstance(asked, dict):
        raise BadRequest(f"The body is JSON, but neither an object nor an array. {_expected(runtime, runtime.default)}")
    for key, form in _FORMS:
        if key in asked:
            return form(asked, runtime, model)
    raise BadRequest(
        f"The body has none of 'instances', 'inputs' and 'data'; its keys: {', '.join(map(repr, asked)) or 'none'}. "
        f"{_expected(runtime, runtime.default)}"
    )


def render(request: Request, outputs: Arrays) -> Answer:
    """The answer, in the form of the request."""
    return request.answer_form(outputs)


def metadata(runtime: Runtime, model: str, version: str = "1") -> dict[str, Any]:
    """What the Open Inference Protocol tells about a model."""
    inputs, outputs = runtime.signatures[runtime.default]
    return {
        "name": model,
        "versions": [version],
        "platform": runtime.platform,
        "inputs": [_described(each) for each in inputs],
        "outputs": [_described(each) for each in outputs],
    }


# TensorFlow Serving, and Azure's


def _of_rows(asked: dict[str, Any], runtime: Runtime, _: str) -> Request:
    signature = _signature(asked.get("signature_name"), runtime)
    instances = asked["instances"]
    if not isinstance(instances, list) or not instances:
        raise BadRequest(f"'instances' must be a list of at least one row. {_expected(runtime, signature)}")
    inputs = _arrays(_columns_of(instances, runtime, signature), runtime, signature)
    return _request(signature, inputs, lambda outputs: _rows_answer(outputs, len(instances)))


def _of_columns(asked: dict[str, Any], runtime: Runtime, model: str) -> Request:
    given = asked["inputs"]
    if isinstance(given, list) and given and isinstance(given[0], dict) and {"name", "shape"} <= set(given[0]):
        return _of_protocol(asked, [], runtime, model)
    if isinstance(given, dict) and any(isinstance(each, dict) and "dims" in each for each in given.values()):
        return _of_onnx_server(asked, runtime)
    signature = _signature(asked.get("signature_name"), runtime)
    inputs = _arrays(_columns_of(given, runtime, signature), runtime, signature)
    return _request(signature, inputs, lambda outputs: _answer({"outputs": _one_or_all(outputs)}))


def _of_azure(asked: dict[str, Any], runtime: Runtime, _: str) -> Request:
    method = asked.get("method")
    if method is not None and not runtime.methods and method != "predict":
        raise BadRequest(f"This model has no method {method!r}; leave 'method' out.")
    signature = _signature(method if runtime.methods else asked.get("signature_name"), runtime)
    inputs = _arrays(_columns_of(asked["data"], runtime, signature), runtime, signature)
    said = signature if runtime.methods else "predict"
    return _request(signature, inputs, lambda outputs: _answer({said: _one_or_all(outputs)}))


def _columns_of(given: Any, runtime: Runtime, signature: str) -> dict[str, Any]:
    """The values of each input, from columns ({"x": [...]}), from rows ([{"x": ...}]), or for the only input."""
    inputs = runtime.signatures[signature][0]
    if isinstance(given, dict) and set(given) != {"b64"}:
        return given
    if isinstance(given, list) and given and isinstance(given[0], dict) and set(given[0]) != {"b64"}:
        names = runtime.columns or [each.name for each in inputs]
        columns = {name: [_value_of(row, name, runtime, signature) for row in given] for name in names}
        unknown = [name for row in given for name in row if name not in columns]
        if unknown:
            raise BadRequest(f"There is no input '{unknown[0]}'. {_expected(runtime, signature)}")
        if runtime.columns:
            return {inputs[0].name: [list(row) for row in zip(*columns.values())]}
        return columns
    if len(inputs) != 1:
        raise BadRequest(f"The model has {len(inputs)} inputs: give each by its name. {_expected(runtime, signature)}")
    return {inputs[0].name: given}


def _value_of(row: Any, name: str, runtime: Runtime, signature: str) -> Any:
    if not isinstance(row, dict):
        raise BadRequest(f"Some rows are objects and some are not. {_expected(runtime, signature)}")
    if name not in row:
        raise BadRequest(f"'{name}' is missing in a row. {_expected(runtime, signature)}")
    return row[name]


def _rows_answer(outputs: Arrays, rows: int) -> Answer:
    if any(not numpy.ndim(each) or len(each) != rows for each in outputs.values()):
        raise BadRequest(
            "The model does not answer row by row. Ask with 'inputs' instead of 'instances' to get its outputs whole."
        )
    if len(outputs) == 1:
        return _answer({"predictions": next(iter(_sendable(outputs).values()))})
    columns = {name: _list(each) for name, each in _sendable(outputs).items()}
    return _answer({"predictions": [dict(zip(columns, row)) for row in zip(*columns.values())]})


def _one_or_all(outputs: Arrays) -> Any:
    sendable = _sendable(outputs)
    return next(iter(sendable.values())) if len(sendable) == 1 else sendable


_FORMS: Sequence[tuple[str, Callable[[dict[str, Any], Runtime, str], Request]]] = (
    ("instances", _of_rows),
    ("inputs", _of_columns),
    ("data", _of_azure),
)


# ONNX Runtime Server

# By the number that ONNX gives each type, and the field that holds it where it is not in rawData.
_ONNX_TYPES = {
    1: ("float32", "floatData"),
    2: ("uint8", "int32Data"),
    3: ("int8", "int32Data"),
    4: ("uint16", "int32Data"),
    5: ("int16", "int32Data"),
    6: ("int32", "int32Data"),
    7: ("int64", "int64Data"),
    8: ("string", "stringData"),
    9: ("bool", "int32Data"),
    10: ("float16", "int32Data"),
    11: ("float64", "doubleData"),
    12: ("uint32", "uint64Data"),
    13: ("uint64", "uint64Data"),
}
_ONNX_NAMES = {"FLOAT": 1, "DOUBLE": 11, **{name.upper(): number for number, (name, _) in _ONNX_TYPES.items()}}
_ONNX_NUMBERS = {name: number for number, (name, _) in _ONNX_TYPES.items()}


def _of_onnx_server(asked: dict[str, Any], runtime: Runtime) -> Request:
    signature = _signature(None, runtime)
    known = {each.name: each for each in runtime.signatures[signature][0]}
    tensors = {name: _of_onnx_tensor(name, each, known.get(name)) for name, each in asked["inputs"].items()}
    wanted = asked.get("outputFilter") or asked.get("output_filter") or []
    _check_outputs(wanted, runtime, signature)
    inputs = _checked(tensors, runtime, signature)
    return _request(signature, inputs, lambda outputs: _onnx_answer(outputs, wanted))


def _of_onnx_tensor(name: str, given: Any, expected: Tensor | None) -> Any:
    wants = f" Expected: {expected}." if expected is not None else ""
    try:
        dims = tuple(int(size) for size in given["dims"])
        number = given.get("dataType", given.get("data_type"))
        number = _ONNX_NAMES.get(str(number).upper(), number)
        dtype, field = _ONNX_TYPES[int(number)]
        raw = given.get("rawData", given.get("raw_data"))
        snake = "".join("_" + letter.lower() if letter.isupper() else letter for letter in field)
        values = given.get(field, given.get(snake, []))
        if dtype == "string":
            found = _object_array([base64.b64decode(each).decode() for each in values])
        elif raw is not None:
            found = numpy.frombuffer(base64.b64decode(raw), _little(dtype))
        elif dtype == "float16":
            found = numpy.array(values, numpy.uint16).view(numpy.float16)
        else:
            found = numpy.array([float(each) if dtype[0] == "f" else int(each) for each in values]).astype(dtype)
        return found.reshape(dims)
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise BadRequest(f"Input '{name}' is no tensor of dims, dataType and rawData ({error}).{wants}") from None


def _onnx_answer(outputs: Arrays, wanted: Sequence[str]) -> Answer:
    told = {name: each for name, each in outputs.items() if not wanted or name in wanted}
    return _answer({"outputs": {name: _onnx_tensor(numpy.asarray(each)) for name, each in told.items()}})


def _onnx_tensor(array: Any) -> dict[str, Any]:
    dims = [str(size) for size in array.shape]  # as protobuf writes large integers in JSON
    number = _ONNX_NUMBERS.get(array.dtype.name)
    if number is None:
        texts = [base64.b64encode(_bytes(each)).decode() for each in array.ravel().tolist()]
        return {"dims": dims, "dataType": _ONNX_NUMBERS["string"], "stringData": texts}
    raw = base64.b64encode(numpy.ascontiguousarray(array, _little(array.dtype.name)).tobytes()).decode()
    return {"dims": dims, "dataType": number, "rawData": raw}


# Open Inference Protocol

_PROTOCOL_TYPES = {
    "BOOL": "bool", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32", "UINT64": "uint64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "FP16": "float16", "FP32": "float32", "FP64": "float64",
    "BYTES": "string",
}  # fmt: skip
_PROTOCOL_NAMES = {dtype: name for name, dtype in _PROTOCOL_TYPES.items()}


def _of_binary(body: bytes, header_length: int, runtime: Runtime, model: str) -> Request:
    if header_length == 0:
        return _of_raw(body, runtime, model)
    if not 0 < header_length <= len(body):
        raise BadRequest(f"{HEADER_LENGTH} is {header_length}, and the body has {len(body)} bytes.")
    asked = _json(body[:header_length], runtime)
    tensors = asked.get("inputs") if isinstance(asked, dict) else None
    if not isinstance(tensors, list):
        raise BadRequest(f"The JSON before the tensors has no list 'inputs'. {_expected(runtime, runtime.default)}")
    parts, at = [], header_length
    for each in tensors:
        size = _parameter(each, "binary_data_size")
        if size is not None:
            if not isinstance(size, int) or size < 0 or at + size > len(body):
                raise BadRequest(f"binary_data_size {size!r} goes beyond the body, which has {len(body)} bytes.")
            parts.append(body[at : at + size])
            at += size
    if at != len(body):
        raise BadRequest(f"The body has {len(body) - at} bytes more than its tensors' binary_data_size tells.")
    return _of_protocol(asked, parts, runtime, model)


def _of_raw(body: bytes, runtime: Runtime, model: str) -> Request:
    """The body is the only input's bytes, nothing else."""
    signature = _signature(None, runtime)
    inputs = runtime.signatures[signature][0]
    free = [at for at, size in enumerate(inputs[0].shape or ()) if size is None] if len(inputs) == 1 else [0, 0]
    if len(inputs) != 1 or len(free) > 1 or inputs[0].dtype in ("string", "any") or inputs[0].shape is None:
        raise BadRequest(f"The bytes alone do not say what they are. {_expected(runtime, signature)}")
    shape = [-1 if size is None else size for size in inputs[0].shape]
    try:
        array = numpy.frombuffer(body, _little(inputs[0].dtype)).reshape(shape)
    except ValueError:
        raise BadRequest(f"{len(body)} bytes do not make whole rows. {_expected(runtime, signature)}") from None
    found = _checked({inputs[0].name: array}, runtime, signature)
    return _request(signature, found, lambda outputs: _protocol_answer(outputs, {}, model, binary=True))


def _of_protocol(asked: dict[str, Any], parts: Sequence[bytes], runtime: Runtime, model: str) -> Request:
    signature = _signature(_parameter(asked, "signature_name"), runtime)
    known = {each.name: each for each in runtime.signatures[signature][0]}
    waiting = iter(parts)
    tensors = {}
    for each in asked["inputs"]:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise BadRequest(f"Each of 'inputs' is an object with a name. {_expected(runtime, signature)}")
        part = next(waiting, None) if _parameter(each, "binary_data_size") is not None else None
        tensors[each["name"]] = _of_protocol_tensor(each, part, known.get(each["name"]))
    outputs_wanted = asked.get("outputs") or []
    if not all(isinstance(each, dict) and "name" in each for each in outputs_wanted):
        raise BadRequest("Each of 'outputs' is an object with a name.")
    _check_outputs([each["name"] for each in outputs_wanted], runtime, signature)
    inputs = _checked(tensors, runtime, signature)
    binary = bool(_parameter(asked, "binary_data_output"))
    return _request(signature, inputs, lambda outputs: _protocol_answer(outputs, asked, model, binary))


def _of_protocol_tensor(given: dict[str, Any], part: bytes | None, expected: Tensor | None) -> Any:
    name, datatype = given["name"], given.get("datatype")
    wants = f" Expected: {expected}." if expected is not None else ""
    dtype = _PROTOCOL_TYPES.get(str(datatype))
    if dtype is None:
        raise BadRequest(f"Input '{name}' has datatype {datatype!r}, which the protocol does not know.{wants}")
    try:
        shape = tuple(int(size) for size in given["shape"])
        if part is not None:
            flat = _object_array(_cut(part)) if dtype == "string" else numpy.frombuffer(part, _little(dtype))
        else:
            values = given["data"]
            flat = _object_array(_flat_strings(values)) if dtype == "string" else _cast(values, dtype)
        return flat.reshape(shape)
    except (KeyError, ValueError, TypeError, OverflowError, struct.error) as error:
        why = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
        raise BadRequest(f"Input '{name}' does not make a tensor of its shape and datatype: {why}.{wants}") from None


def _protocol_answer(outputs: Arrays, asked: dict[str, Any], model: str, binary: bool) -> Answer:
    wanted = {each["name"]: _parameter(each, "binary_data") for each in asked.get("outputs") or []}
    told, parts = [], []
    for name, value in outputs.items():
        if wanted and name not in wanted:
            continue
        array = numpy.asarray(value)
        datatype = _PROTOCOL_NAMES.get(array.dtype.name, "BYTES")
        tensor: dict[str, Any] = {"name": name, "shape": list(array.shape), "datatype": datatype}
        as_bytes = wanted.get(name)
        if binary if as_bytes is None else as_bytes:
            parts.append(_protocol_bytes(array, datatype))
            tensor["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            tensor["data"] = next(iter(_sendable({name: array.ravel()}).values()))
        told.append(tensor)
    head: dict[str, Any] = {"model_name": model, "model_version": "1", "outputs": told}
    if asked.get("id") is not None:
        head["id"] = asked["id"]
    if not parts:
        return _answer(head)
    header = _dumps(head)
    answer = Answer(b"".join([header, *parts]))
    answer.headers = {"Content-Type": BINARY, HEADER_LENGTH: str(len(header))}
    return answer


def _protocol_bytes(array: Any, datatype: str) -> bytes:
    if datatype != "BYTES":
        return numpy.ascontiguousarray(array, _little(array.dtype.name)).tobytes()
    texts = [_bytes(each) for each in array.ravel().tolist()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def _cut(part: bytes) -> list[str]:
    found, at = [], 0
    while at < len(part):
        (size,) = struct.unpack_from("<I", part, at)
        at += 4 + size
        if at > len(part):
            raise ValueError("a text is cut short")
        found.append(part[at - size : at].decode())
    return found


def _parameter(given: Any, name: str) -> Any:
    parameters = given.get("parameters") if isinstance(given, dict) else None
    return parameters.get(name) if isinstance(parameters, dict) else None


def _described(tensor: Tensor) -> dict[str, Any]:
    shape = [-1 if size is None else size for size in (tensor.shape if tensor.shape is not None else (None,))]
    return {"name": tensor.name, "datatype": _PROTOCOL_NAMES.get(tensor.dtype, "FP64"), "shape": shape}


# What every form needs


def _json(body: bytes, runtime: Runtime) -> Any:
    try:
        if orjson is not None:
            return orjson.loads(body)
        return json.loads(bytes(body).decode("utf-8"), parse_constant=_no_constant)
    except ValueError as error:
        text = bytes(body[:20_000_000])
        hint = " JSON has no NaN and no Infinity." if b"NaN" in text or b"Infinity" in text else ""
        raise BadRequest(f"The body is not JSON: {error}.{hint} {_expected(runtime, runtime.default)}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _signature(asked: Any, runtime: Runtime) -> str:
    if asked is None or asked == "":
        return runtime.default
    if asked in runtime.signatures:
        return str(asked)
    what = "method" if runtime.methods else "signature"
    raise BadRequest(f"The model has no {what} {asked!r}. It has: {', '.join(runtime.signatures)}.")


def _expected(runtime: Runtime, signature: str) -> str:
    inputs = runtime.signatures[signature][0]
    if runtime.columns:
        return f"Expected: rows with the features {', '.join(runtime.columns)}."
    return f"Expected {'input' if len(inputs) == 1 else 'inputs'}: {', '.join(map(str, inputs))}."


def _check_outputs(names: Sequence[str], runtime: Runtime, signature: str) -> None:
    known = [each.name for each in runtime.signatures[signature][1]]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadRequest(f"The model has no output '{unknown[0]}'. It has: {', '.join(known)}.")


def _request(signature: str, inputs: Arrays, answer_form: Callable[[Arrays], Answer]) -> Request:
    lengths = {len(array) if array.ndim else 0 for array in inputs.values()}
    return Request(signature, inputs, lengths.pop() if len(lengths) == 1 else 0, answer_form)


def _arrays(columns: dict[str, Any], runtime: Runtime, signature: str) -> Arrays:
    """Plain values of JSON as arrays of the types that the inputs have."""
    inputs = runtime.signatures[signature][0]
    if len(inputs) == 1 and columns.keys() == {inputs[0].name}:
        quick = number_rows.array_of(columns[inputs[0].name], inputs[0])
        if quick is not None:  # it has the type and the shape that are expected
            return {inputs[0].name: quick}
    expected = {each.name: each for each in inputs}
    found = {}
    for name, values in columns.items():
        tensor = expected.get(name)
        if tensor is None:
            raise BadRequest(f"There is no input '{name}'. {_expected(runtime, signature)}")
        try:
            found[name] = _cast(values, tensor.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise BadRequest(f"Input '{name}' cannot be read: {error}. {_expected(runtime, signature)}") from None
    return _checked(found, runtime, signature)


def _checked(arrays: Arrays, runtime: Runtime, signature: str) -> Arrays:
    """All inputs are there, none that the model does not have, and each has its type and shape."""
    inputs = runtime.signatures[signature][0]
    for name in arrays:
        if not any(name == each.name for each in inputs):
            raise BadRequest(f"There is no input '{name}'. {_expected(runtime, signature)}")
    found = {}
    for tensor in inputs:
        name = tensor.name
        if name not in arrays:
            raise BadRequest(f"Input '{name}' is missing. {_expected(runtime, signature)}")
        array = arrays[name]
        if tensor.dtype not in ("any", "string") and array.dtype != tensor.dtype:
            if array.dtype == object or not numpy.can_cast(array.dtype, tensor.dtype, "safe"):
                raise BadRequest(f"Input '{name}' is {_type_name(array)}. {_expected(runtime, signature)}")
            array = array.astype(tensor.dtype)
        elif tensor.dtype == "string" and array.dtype.kind not in "OUS":
            raise BadRequest(f"Input '{name}' is {_type_name(array)}. {_expected(runtime, signature)}")
        if not _fits(array.shape, tensor.shape):
            raise BadRequest(f"Input '{name}' has shape {list(array.shape)}. {_expected(runtime, signature)}")
        found[name] = array
    return found


def _type_name(array: Any) -> str:
    return "text" if array.dtype.kind in "OUS" else str(array.dtype.name)


def _fits(shape: tuple[int, ...], expected: tuple[int | None, ...] | None) -> bool:
    if expected is None:
        return True
    return len(shape) == len(expected) and all(want in (None, size) for size, want in zip(shape, expected))


def _cast(values: Any, dtype: str) -> Any:
    """Values of JSON as an array. Raises ValueError where that would change them."""
    if dtype == "string":
        return _strings(values)
    array = _plain_array(values)
    if dtype == "any":
        return _any(array)
    kind, wanted = array.dtype.kind, numpy.dtype(dtype)
    if kind in "OUS" or (kind == "b") != (wanted.kind == "b"):
        raise ValueError(f"it holds {_wrong_value(array)}")
    if wanted.kind in "iu":
        if kind == "f" and not numpy.array_equal(array, numpy.trunc(array)):
            raise ValueError("it holds fractions")
        limits = numpy.iinfo(wanted)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise ValueError(f"it holds numbers beyond {wanted.name}")
    with numpy.errstate(over="ignore"):
        cast = array.astype(wanted)
    if wanted.kind == "f" and array.size and not numpy.isfinite(cast).all():
        raise ValueError(f"it holds numbers beyond {wanted.name}")
    return cast


def _plain_array(values: Any) -> Any:
    try:
        array = numpy.array(values)
    except ValueError:  # rows of different lengths
        raise ValueError("its rows are of different lengths") from None
    if array.dtype == object and any(isinstance(each, (list, tuple)) for each in array.ravel()):
        raise ValueError("its rows are of different lengths")  # as numpy of years ago answers
    return array


def _any(array: Any) -> Any:
    """As the values are: numbers, with NaN for null, or text, or both."""
    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype == object:
        try:
            return array.astype(numpy.float64)
        except (ValueError, TypeError):
            pass
    return array


def _wrong_value(array: Any) -> str:
    if array.dtype.kind == "b":
        return "true or false"
    if array.dtype.kind in "US":
        return "text"
    if any(each is None for each in array.ravel().tolist()):
        return "null"
    return "values that are no numbers" if array.dtype == object else "numbers, not true and false"


def _strings(values: Any) -> Any:
    """An array of texts, or of bytes where TensorFlow Serving's {"b64": ...} stands."""
    shape: list[int] = []
    level = values
    while isinstance(level, list):
        shape.append(len(level))
        level = level[0] if level else None
    flat = [_string(each) for each in _flat_strings(values)]
    array = _object_array(flat)
    try:
        return array.reshape(shape)
    except ValueError:
        raise ValueError("its rows are of different lengths") from None


def _string(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"b64"}:
        return base64.b64decode(value["b64"])
    raise ValueError(f"it holds {json.dumps(value)[:40]}, which is no text")


def _flat_strings(values: Any) -> list[Any]:
    if not isinstance(values, list):
        return [values]
    return [each for value in values for each in _flat_strings(value)]


def _object_array(values: Sequence[Any]) -> Any:
    array = numpy.empty(len(values), object)
    array[:] = values
    return array


def _little(dtype: str) -> Any:
    return numpy.dtype(dtype).newbyteorder("<")


# Answers


def _answer(value: dict[str, Any]) -> Answer:
    answer = Answer(_dumps(value))
    answer.headers = {"Content-Type": JSON}
    return answer


def _sendable(outputs: Arrays) -> dict[str, Any]:
    return {name: _sendable_array(numpy.asarray(each), name) for name, each in outputs.items()}


def _sendable_array(array: Any, name: str) -> Any:
    """An array of plain numbers for orjson, else lists; what JSON cannot hold (NaN) as null, as orjson writes it."""
    kind = array.dtype.kind
    if kind in "OSU":
        return _texts(array.tolist(), name.endswith("_bytes"))
    if orjson is not None and array.ndim:
        return array if array.flags.c_contiguous else numpy.ascontiguousarray(array)
    if kind == "f" and not numpy.isfinite(array).all():
        holes = array.astype(object)
        holes[~numpy.isfinite(array)] = None
        return holes.tolist()
    return array.tolist()


def _texts(value: Any, as_bytes: bool) -> Any:
    if isinstance(value, list):
        return [_texts(each, as_bytes) for each in value]
    if isinstance(value, dict):  # how onnxruntime gives the probabilities of a classifier
        return {str(key): _texts(each, as_bytes) for key, each in value.items()}
    if isinstance(value, bytes):
        if as_bytes:
            return {"b64": base64.b64encode(value).decode()}
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"b64": base64.b64encode(value).decode()}
    return value.item() if isinstance(value, numpy.generic) else value


def _list(value: Any) -> Any:
    return value.tolist() if isinstance(value, numpy.ndarray) else value


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _dumps(value: Any) -> bytes:
    if orjson is None:
        return json.dumps(value, separators=(",", ":")).encode()
    written: bytes = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY, default=_list)
    return written
