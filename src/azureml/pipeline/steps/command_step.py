"""A step that runs a command."""

from lapis.sdk.pipelines.script_steps import CommandStep as CommandStep
