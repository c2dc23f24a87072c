"""A step that runs a Python script."""

from lapis.sdk.pipelines.script_steps import PythonScriptStep as PythonScriptStep
