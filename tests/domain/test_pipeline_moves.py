"""What a pipeline does next, and what a plan of one may be."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from lapis.domain.job import Job, Output, Reference
from lapis.domain.pipeline import FromStep, PipelinePlan, StepPlan, WholeOutput, circle_in
from lapis.domain.pipeline_moves import COMPLETED, FAILED, Shape, decide, number_of, step_run_id
from lapis.errors import UserErrorException


def shape(needs: list[set[int]], go_on: bool = False) -> Shape:
    return Shape([f"s{number}" for number in range(len(needs))], needs, go_on)


def random_graph(chance: Random) -> list[set[int]]:
    count = chance.randint(1, 12)
    return [{each for each in range(number) if chance.random() < 0.3} for number in range(count)]


def lived(
    chance: Random, plan: Shape, failing: set[int], cancel_after: int | None = None
) -> tuple[dict[int, Any], Any]:
    """Every step of a pipeline's life, with what happens in an order that nobody chose."""
    steps: dict[int, Any] = {}
    asked: set[int] = set()
    for turn in range(1000):
        cancel = cancel_after is not None and turn >= cancel_after
        decision = decide(plan, steps, asked, cancel)
        assert decision == decide(plan, dict(steps), set(asked), cancel)  # whoever starts again decides the same
        for number in decision.start:
            assert number not in steps
            assert all(steps[need] == COMPLETED for need in plan.needs[number])
            steps[number] = None
        asked.update(decision.stop)
        if decision.end is not None:
            assert None not in steps.values()
            return steps, decision.end
        live = [number for number, state in steps.items() if state is None]
        assert live, "nothing lives, and it has not ended"
        number = chance.choice(live)
        steps[number] = "Canceled" if number in asked else FAILED if number in failing else COMPLETED
    raise AssertionError("it never ends")


@pytest.mark.parametrize("seed", range(200))
def test_any_pipeline_without_a_failure_runs_every_step_once_and_completes(seed: int) -> None:
    chance = Random(seed)
    needs = random_graph(chance)
    steps, end = lived(chance, shape(needs), set())
    assert steps == dict.fromkeys(range(len(needs)), COMPLETED) and end.state == COMPLETED


@pytest.mark.parametrize("seed", range(200))
def test_with_failures_exactly_what_hangs_on_them_is_left_out(seed: int) -> None:
    chance = Random(seed)
    needs = random_graph(chance)
    failing = {number for number in range(len(needs)) if chance.random() < 0.3}
    steps, end = lived(chance, shape(needs, go_on=True), failing)
    bad: set[int] = set()
    for number, each in enumerate(needs):  # numbered so that needs come first
        if number in failing or each & bad:
            bad.add(number)
    assert {number for number, state in steps.items() if state == COMPLETED} == set(range(len(needs))) - bad
    assert end.state == (FAILED if bad else COMPLETED)
    _, end = lived(chance, shape(needs), failing)
    assert end.state == (FAILED if failing else COMPLETED)


@pytest.mark.parametrize("seed", range(100))
def test_a_cancelled_pipeline_starts_nothing_more_and_ends(seed: int) -> None:
    chance = Random(seed)
    _, end = lived(chance, shape(random_graph(chance)), set(), cancel_after=chance.randint(0, 3))
    assert end.state in ("Canceled", COMPLETED)


def test_the_end_names_what_failed_and_how_much_was_not_run() -> None:
    end = decide(shape([set(), {0}, {1}]), {0: FAILED}).end
    assert end is not None and end.reason == "Step 's0' failed, and 2 steps were not run"


def test_the_run_of_a_step_has_its_number_in_its_id() -> None:
    assert number_of("p", step_run_id("p", 12)) == 12
    assert number_of("p", "p_x") == number_of("p", "q_1") == number_of("p", "p") == -1


def test_a_circle_is_found_and_named_in_its_order() -> None:
    assert circle_in([set(), {0}, {1}]) == []
    assert circle_in([set(), {0, 3}, {1}, {2}]) == [1, 3, 2]
    assert circle_in([{0}]) == [0]


# -- at the door


def step(name: str, **more: Any) -> dict[str, Any]:
    output = Output("out", "mount", "/store/azureml/{run-id}/out", {"type": "file", "sources": []})
    plan = StepPlan(name, Job(script="train.py", outputs=(output,)), "snapshot")
    return {**plan.to_json(), **more}


def reads(number: int, output: str = "out") -> dict[str, Any]:
    return FromStep(number, output, Reference("in", "mount", "/store/azureml/{run-id}/out")).to_json()


def test_a_plan_comes_back_as_it_was_written() -> None:
    body = {
        "steps": [step("a"), step("b", inputs=[reads(0)], after=[0])],
        "outputs": {"o": {"step": 1, "output": "out"}},
    }
    plan = PipelinePlan.checked(body, "pipeline")
    assert PipelinePlan.from_json(plan.to_json()) == plan and plan.outputs["o"] == WholeOutput(1, "out")
    assert plan.steps[1].needs == {0}
    given = plan.steps[1].inputs[0].of_run("p_0")
    assert isinstance(given, Reference) and given.place == "/store/azureml/p_0/out"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"steps": []}, "has no steps"),
        ({"steps": [step("a", after=[1])]}, "waits for step 1, which is not there"),
        ({"steps": [step("a", inputs=[reads(0, "other")])]}, "writes no such output"),
        ({"steps": [step("a", inputs=[reads(1)]), step("b", after=[0])]}, "'a' waits for 'b' waits for 'a'"),
        ({"steps": [step("a")], "outputs": {"o": {"step": 0, "output": "x"}}}, "an output 'o' that no step writes"),
        ({"steps": [step("a", colour="red")]}, "colour"),
        ({"steps": [step("a", allow_reuse="yes")]}, "true or false"),
        ({"steps": [step("a" * 300)]}, "255 characters"),
        ({"steps": [step("a", job={})]}, "neither a script nor a command"),
        ({"steps": [step("a", after=[-1])]}, "waits for step -1, which is not there"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused_by_name(body: dict[str, Any], said: str) -> None:
    with pytest.raises(UserErrorException, match=said):
        PipelinePlan.checked(body, "pipeline")
