"""How the next hyperparameters are chosen: by chance, one after the other, or from how the last ones did."""

from __future__ import annotations

from typing import Any

from lapis.domain import spaces
from lapis.domain.sweeps import BAYESIAN, GRID, RANDOM, check_sampling
from lapis.errors import HyperDriveConfigException

_KNOWN = {"seed"}


class HyperParameterSampling:
    """What all samplings have in common. `properties={'seed': 7}`, Lapis' own, makes a search repeatable."""

    def __init__(
        self,
        sampling_method_name: str,
        parameter_space: Any,
        properties: Any = None,
        supported_distributions: Any = None,
        distributions_validators: Any = None,
    ) -> None:
        given = dict(properties or {})
        unknown = sorted(set(given) - _KNOWN)
        if unknown:
            raise HyperDriveConfigException(f"properties of a sampling may hold 'seed', not {', '.join(unknown)}.")
        body = {"name": sampling_method_name, "parameter_space": parameter_space, "seed": given.get("seed", 0)}
        self._sampling_method_name = sampling_method_name
        self._parameter_space = dict(check_sampling(body).space)
        self._properties = given
        for name, kind in spaces.kinds(self._parameter_space).items():
            if supported_distributions is not None and kind not in supported_distributions:
                raise HyperDriveConfigException(
                    f"Parameter '{name}' is a {kind}, which this sampling does not take. "
                    f"It takes: {', '.join(supported_distributions)}."
                )

    def to_json(self) -> dict[str, Any]:
        """What is sent with the search."""
        body: dict[str, Any] = {"name": self._sampling_method_name, "parameter_space": self._parameter_space}
        return dict(body, properties=self._properties) if self._properties else body

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HyperParameterSampling) and other.to_json() == self.to_json()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._parameter_space!r})"


class RandomParameterSampling(HyperParameterSampling):
    """By chance. Of a space that has an end, every point is tried at most once."""

    SAMPLING_NAME = RANDOM

    def __init__(self, parameter_space: Any, properties: Any = None) -> None:
        super().__init__(self.SAMPLING_NAME, parameter_space, properties)


class GridParameterSampling(HyperParameterSampling):
    """Every combination of choices, one after the other."""

    SAMPLING_NAME = GRID

    def __init__(self, parameter_space: Any, properties: Any = None) -> None:
        super().__init__(self.SAMPLING_NAME, parameter_space, properties, [spaces.CHOICE])


class BayesianParameterSampling(HyperParameterSampling):
    """From how the last ones did."""

    SAMPLING_NAME = BAYESIAN

    def __init__(self, parameter_space: Any, properties: Any = None) -> None:
        super().__init__(self.SAMPLING_NAME, parameter_space, properties, list(spaces.BAYESIAN))
