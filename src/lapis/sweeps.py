"""What a hyperparameter search can do in Lapis and could not in SDK v1."""

from lapis.sdk.training.parameter_expressions import when as when
from lapis.sdk.training.stopping_policies import AshaPolicy as AshaPolicy

ASHA = AshaPolicy

__all__ = ["ASHA", "AshaPolicy", "when"]
