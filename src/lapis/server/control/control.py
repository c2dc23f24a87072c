"""Everything that can be done here, by subject."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.server.control.computes import Computes
from lapis.server.control.data import Data
from lapis.server.control.environments import Environments
from lapis.server.control.files import Files
from lapis.server.control.images import Images
from lapis.server.control.lifetime import Lifetime
from lapis.server.control.metrics import Metrics
from lapis.server.control.models import Models
from lapis.server.control.pipelines import Pipelines
from lapis.server.control.profiles import Profiles
from lapis.server.control.run_views import RunViews
from lapis.server.control.runs import Runs
from lapis.server.control.secrets import Secrets
from lapis.server.control.services import Services
from lapis.server.control.sweeps import Sweeps
from lapis.server.control.upkeep import Upkeep
from lapis.server.control.workspaces import Workspaces


@dataclass(frozen=True)
class Control:
    """The server itself uses it as it is; whoever comes from outside gets it guarded (guard.py)."""

    lifetime: Lifetime
    workspaces: Workspaces
    runs: Runs
    run_views: RunViews
    files: Files
    metrics: Metrics
    sweeps: Sweeps
    pipelines: Pipelines
    computes: Computes
    data: Data
    environments: Environments
    models: Models
    services: Services
    images: Images
    profiles: Profiles
    secrets: Secrets
    upkeep: Upkeep
