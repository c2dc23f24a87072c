"""Fixtures that every test may use: those that are shipped, a Ray cluster, and a web server."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.ray_cluster import _ray_cluster, ray_cluster
from tests.web import Web, serving

__all__ = ["_ray_cluster", "ray_cluster"]  # fixtures: one cluster for all tests that want it
pytest_plugins = ["lapis.testing.fixtures"]

for _name in [name for name in os.environ if name.startswith(("LAPIS_", "AZUREML_"))]:
    del os.environ[_name]  # whatever the developer's own shell says does not count here


@pytest.fixture
def web() -> Iterator[Web]:
    """A web server whose pages a test writes."""
    with serving() as web:
        yield web


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest the group of a test: pytest-xdist 3.8 writes it into `_nodeid`, which pytest 9.2 no longer reads."""
    for item in items:
        grouped = vars(item).get("_nodeid")
        if grouped is not None and item.nodeid != grouped:
            item._id = type(item.id).parse(grouped)
