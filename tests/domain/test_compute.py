"""Which nodes a cluster should have for the runs that wait."""

from __future__ import annotations

import pytest

from lapis.domain.compute import (
    IDLE,
    PREPARING,
    RUNNING,
    Cluster,
    Node,
    Wants,
    check_cluster,
    free_numbers,
    plan,
)
from lapis.domain.vm_sizes import all_sizes, vm_size
from lapis.errors import ComputeTargetException


def node(number: int, state: str = IDLE, since: float = 0.0, run_id: str | None = None) -> Node:
    return Node(f"n{number}", number, state, since, run_id)


def cluster(*nodes: Node, max_nodes: int = 4, min_nodes: int = 0, idle_seconds: float = 60.0) -> Cluster:
    return Cluster("c1", "STANDARD_D2_V2", max_nodes, min_nodes, idle_seconds, nodes=nodes)


def given(made: object) -> list[tuple[str, list[int]]]:
    return [(run, [each.number for each in nodes]) for run, nodes in made.give]  # type: ignore[attr-defined]


def test_nothing_runs_on_a_cluster_that_nobody_wants() -> None:
    assert plan(cluster(), [], 0.0).start == 0


def test_nodes_come_up_for_runs_that_wait_and_no_more_than_they_need() -> None:
    assert plan(cluster(), [Wants("a", 1), Wants("b", 2)], 0.0).start == 3
    assert plan(cluster(max_nodes=2), [Wants("a", 1), Wants("b", 2)], 0.0).start == 2
    assert plan(cluster(node(0, PREPARING)), [Wants("a", 1)], 0.0).start == 0


def test_a_run_gets_all_its_nodes_or_none() -> None:
    made = plan(cluster(node(0), node(1)), [Wants("a", 3)], 0.0)
    assert given(made) == [] and made.start == 1
    assert given(plan(cluster(node(0), node(1), node(2)), [Wants("a", 3)], 0.0)) == [("a", [0, 1, 2])]


def test_a_large_run_at_the_head_is_not_overtaken() -> None:
    made = plan(cluster(node(0), node(1, RUNNING, run_id="x"), max_nodes=2), [Wants("big", 2), Wants("small", 1)], 0.0)
    assert given(made) == [] and made.start == 0 and made.stop == ()


def test_runs_are_served_in_their_order() -> None:
    made = plan(cluster(node(0), node(1), node(2)), [Wants("a", 1), Wants("b", 2), Wants("c", 1)], 0.0)
    assert given(made) == [("a", [0]), ("b", [1, 2])] and made.start == 1


def test_idle_nodes_leave_after_their_time_the_last_ones_first() -> None:
    nodes = cluster(node(0, since=0.0), node(1, since=0.0), node(2, RUNNING, run_id="x"), min_nodes=2)
    assert plan(nodes, [], 59.0).stop == ()
    assert [each.number for each in plan(nodes, [], 60.0).stop] == [1]


def test_the_smallest_number_of_nodes_is_kept_without_work() -> None:
    assert plan(cluster(min_nodes=2), [], 0.0).start == 2
    assert plan(cluster(node(0), node(1), min_nodes=2), [], 1e6).stop == ()


def test_nodes_beyond_a_smaller_limit_leave_as_soon_as_they_are_idle() -> None:
    shrunk = cluster(node(0, RUNNING, run_id="x"), node(1), node(2), max_nodes=1, idle_seconds=1e6)
    assert [each.number for each in plan(shrunk, [], 0.0).stop] == [2, 1]


def test_a_new_node_takes_the_lowest_free_number() -> None:
    assert free_numbers(cluster(node(0), node(2)), 2) == [1, 3]


@pytest.mark.parametrize(
    ("name", "size", "smallest", "most", "says"),
    [
        ("a", "STANDARD_D2_V2", 0, 1, "cannot be named 'a'"),
        ("has space", "STANDARD_D2_V2", 0, 1, "cannot be named"),
        ("x" * 25, "STANDARD_D2_V2", 0, 1, "cannot be named"),
        ("ok", "STANDARD_D2_V9", 0, 1, "no VM size 'STANDARD_D2_V9'. Near it: Standard_D2_v"),
        ("ok", "STANDARD_D2_V2", 2, 1, "cannot have 2 to 1 nodes"),
        ("ok", "STANDARD_D2_V2", 0, 0, "cannot have 0 to 0 nodes"),
        ("ok", "STANDARD_D2_V2", -1, 1, "cannot have -1 to 1 nodes"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_with_the_reason(
    name: str, size: str, smallest: int, most: int, says: str
) -> None:
    with pytest.raises(ComputeTargetException, match=says):
        check_cluster(Cluster(name, size, most, smallest))


def test_sizes_are_known_in_any_case() -> None:
    assert vm_size("STANDARD_NC6") == vm_size("standard_nc6") == ("Standard_NC6", 6, 56.0, 1)
    assert len({each.name.lower() for each in all_sizes()}) == len(all_sizes()) > 100


def test_a_number_beyond_all_bounds_is_refused_by_its_name() -> None:
    with pytest.raises(ComputeTargetException, match="max_nodes must be a whole number of at most 10000"):
        check_cluster(cluster(max_nodes=10**30))


def test_what_a_database_says_takes_no_more_memory_than_it_needs() -> None:
    absurd = cluster(node(1), max_nodes=10**30, min_nodes=10**30)
    assert free_numbers(absurd, 3) == [0, 2, 3]
    assert plan(absurd, [], 0.0).start == 10_000 - 1
