"""What goes wrong with a dataset."""

from lapis.errors import DatasetExecutionError as DatasetExecutionError
from lapis.errors import DatasetValidationError as DatasetValidationError
