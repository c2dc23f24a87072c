"""The run of a submitted script."""

from lapis.sdk.script_run import ScriptRun as ScriptRun
