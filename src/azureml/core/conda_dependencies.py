"""The packages of an environment."""

from lapis.sdk.environments.conda_dependencies import CondaDependencies as CondaDependencies
