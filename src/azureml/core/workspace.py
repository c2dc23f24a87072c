"""Workspaces."""

from lapis.sdk.workspace.workspace import Workspace as Workspace
