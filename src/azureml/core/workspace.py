"""Workspaces."""

from lapis.sdk.workspace import Workspace as Workspace
