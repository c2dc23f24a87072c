"""What a loaded model looks like to its worker: named inputs and outputs, and a way to run many requests at once."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy

from lapis.errors import UserErrorException

SIGNATURES = "lapis.signatures"  # where a converted ONNX file notes the names of its only signature
Arrays = Dict[str, Any]  # by name, each a numpy.ndarray


class Tensor(NamedTuple):
    """An input or an output: None in `shape` is a dimension of any length, None for `shape` any shape at all."""

    name: str
    dtype: str  # as numpy spells it, and "string", or "any" where the model itself decides
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"'{self.name}' ({self.dtype})"
        shape = ", ".join("any" if size is None else str(size) for size in self.shape)
        return f"'{self.name}' ({self.dtype}, shape [{shape}])"


Signatures = Dict[str, Tuple[List[Tensor], List[Tensor]]]


class BadRequest(UserErrorException):
    """What was sent does not fit the model. The message names what it expects."""


class Runtime:
    """A model in memory. `run` may be called from one thread at a time."""

    platform = ""  # as the Open Inference Protocol names it
    methods: Sequence[str] = ()  # of an estimator: each is a signature
    columns: list[str] | None = None  # the names of the features, where rows may be given as objects
    together = 1  # rows that one call may have of several requests: so many got the answers that each gets alone

    def __init__(self, signatures: Signatures, default: str) -> None:
        self.signatures = signatures
        self.default = default

    @property
    def inputs(self) -> list[Tensor]:
        return self.signatures[self.default][0]

    @property
    def outputs(self) -> list[Tensor]:
        return self.signatures[self.default][1]

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        raise NotImplementedError


def run_together(runtime: Runtime, requests: Sequence[Any]) -> list[Any]:
    """The outputs of each request, or what it raised, in order. Requests that fit together are one call of the model.

    A request has `signature`, `inputs` and `rows`. What goes wrong in a call of many is tried again one by one, so that
    no request fails for another's fault.
    """
    if len(requests) == 1:
        return [_alone(runtime, requests[0])]
    answers: list[Any] = [None] * len(requests)
    for members in _alike(runtime, requests):
        together = _joined(runtime, [requests[at] for at in members]) if len(members) > 1 else None
        for place, at in enumerate(members):
            answers[at] = together[place] if together is not None else _alone(runtime, requests[at])
    return answers


def _alike(runtime: Runtime, requests: Sequence[Any]) -> list[list[int]]:
    """The places of requests that can be joined: the same signature and shapes, and not more rows than may be."""
    groups: list[list[int]] = []
    open_groups: dict[Any, tuple[list[int], int]] = {}  # by what they have in common: the last of them, and its rows
    for at, request in enumerate(requests):
        rows, members = request.rows, [at]
        if not 0 < rows < runtime.together:
            groups.append(members)
            continue
        key = (request.signature, *[(name, each.dtype, each.shape[1:]) for name, each in request.inputs.items()])
        last, held = open_groups.get(key, (members, 0))
        if last is not members and held + rows <= runtime.together:
            last.append(at)
            open_groups[key] = last, held + rows
        else:
            groups.append(members)
            open_groups[key] = members, rows
    return groups


def _joined(runtime: Runtime, requests: Sequence[Any]) -> list[Arrays] | None:
    """The outputs of each; None where they have to be run one by one."""
    first = requests[0]
    inputs = {name: numpy.concatenate([each.inputs[name] for each in requests]) for name in first.inputs}
    try:
        outputs = runtime.run(first.signature, inputs)
    except Exception:
        return None
    ends = list(accumulate([each.rows for each in requests]))
    if any(not numpy.ndim(each) or len(each) != ends[-1] for each in outputs.values()):
        return None
    return [
        {name: each[end - request.rows : end] for name, each in outputs.items()} for request, end in zip(requests, ends)
    ]


def _alone(runtime: Runtime, request: Any) -> Any:
    try:
        return runtime.run(request.signature, request.inputs)
    except Exception as error:
        return error
