"""Run configurations and ScriptRunConfig."""
