"""The site that is attacked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from azureml.core import Workspace
from lapis.testing import Home
from tests.security.attack import Site


@pytest.fixture
def site(on_shared_server: Home, workspace: Workspace) -> Iterator[Site]:
    made = Site(on_shared_server, workspace)
    yield made
    made.end()
