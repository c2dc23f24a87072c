"""How much processor and memory something may take."""

from lapis.sdk.models.resource_configuration import ResourceConfiguration as ResourceConfiguration
