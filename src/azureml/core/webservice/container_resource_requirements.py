"""What the container of a web service may take."""

from lapis.sdk.service_parts import ContainerResourceRequirements as ContainerResourceRequirements
