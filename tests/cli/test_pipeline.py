"""`lapis pipeline`: what the command line shows of one."""

from __future__ import annotations

from pathlib import Path

from azureml.pipeline.core import Pipeline, PipelineData
from azureml.pipeline.steps import CommandStep
from lapis.sdk.workspace.workspace import Workspace
from tests.cli.conftest import Lapis


def test_a_pipeline_is_listed_shown_drawn_and_its_logs_are_printed(
    lapis: Lapis, here: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    assert "No pipeline was run" in lapis("pipeline", "list").err
    words = PipelineData("words")
    folder = str(tmp_path / "code")
    first = CommandStep(["echo hello | tee", words], "first", outputs=[words], source_directory=folder)
    second = CommandStep(["cat", words, "&& exit 3"], "second", inputs=[words], source_directory=folder)
    third = CommandStep("true", "third", source_directory=folder)
    third.run_after(second)
    run = Pipeline(here, [first, third]).submit("trial")
    followed = lapis("pipeline", "show", "-f", run.id)
    assert followed.status == 1 and "Step 'second' failed, and 1 step was not run" in followed.err
    assert "no earlier run of it has completed" in followed.out

    assert run.id in lapis("pipeline", "list").out
    head, *lines = lapis("pipeline", "show", run.id).out.splitlines()
    assert head.startswith(f"{run.id} is Failed: Step 'second' failed")
    assert [line.split()[:2] for line in lines] == [["first", "Completed"], ["second", "Failed"], ["third", "-"]]
    assert [len(line) - len(line.lstrip()) for line in lines] == [0, 2, 4] and "waits for second" in lines[2]
    assert [each["name"] for each in lapis("pipeline", "show", run.id, "--json").json["steps"]] == [
        "first", "second", "third",
    ]  # fmt: skip
    assert "Started 'first'" in lapis("pipeline", "logs", run.id).out
    assert "hello" in lapis("pipeline", "logs", run.id, "second").out
    assert "has not started yet" in lapis("pipeline", "logs", run.id, "third").err
    drawn = lapis("pipeline", "graph", run.id).out
    assert 'n0 -> n1 [label="words"];' in drawn and "n1 -> n2 [style=dashed];" in drawn
    assert "is no pipeline" in lapis("pipeline", "show", f"{run.id}_0").err
