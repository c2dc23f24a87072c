"""The packages of an environment."""

from lapis.sdk.conda_dependencies import CondaDependencies as CondaDependencies
