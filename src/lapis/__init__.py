"""Lapis: code written for the Azure Machine Learning SDK v1, on machines you own."""

from lapis.version import VERSION as __version__

__all__ = ["__version__"]
