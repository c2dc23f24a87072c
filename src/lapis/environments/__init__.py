"""Environments: from a definition of 2019 to a folder that runs it today. Needs uv and the standard library only."""
