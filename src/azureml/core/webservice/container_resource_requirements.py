"""What the container of a web service may take."""

from lapis.sdk.models.service_parts import ContainerResourceRequirements as ContainerResourceRequirements
