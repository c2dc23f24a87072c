"""How much processor and memory something may take."""

from lapis.sdk.resource_configuration import ResourceConfiguration as ResourceConfiguration
