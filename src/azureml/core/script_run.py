"""The run of a submitted script."""

from lapis.sdk.runs.script_run import ScriptRun as ScriptRun
