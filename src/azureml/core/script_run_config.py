"""A script with all that it needs to run."""

from lapis.sdk.config.script_run_config import ScriptRunConfig as ScriptRunConfig
from lapis.sdk.config.script_run_config import get_run_config_from_script_run as get_run_config_from_script_run
from lapis.sdk.config.script_run_config import submit as submit
