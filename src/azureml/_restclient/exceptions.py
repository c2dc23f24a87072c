"""Private to SDK v1, but scripts catch this."""

from lapis.errors import ServiceException as ServiceException
