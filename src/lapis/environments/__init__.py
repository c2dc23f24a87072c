"""Environments: from a definition of 2019 to a folder that runs it today. Needs the standard library and uv, no more."""
