"""When the agent of a further node leaves."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from lapis.agent.__main__ import Agent
from lapis.agent.verdict import Verdict
from lapis.domain.job import Job, Mpi
from lapis.domain.launch import Place
from tests.launches import work


def test_an_agent_whose_folder_the_head_cleared_away_waits_no_longer_for_a_server_that_has_left(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "1"
    folder.mkdir(parents=True)
    mpi = work(Job(distribution=Mpi(1)), address_file=str(tmp_path / "address.json"))
    agent = Agent(str(folder), mpi, Place(index=1, count=2, head=str(tmp_path)))
    waits = threading.Thread(target=agent._of_all_nodes, args=(Verdict("Completed", "done"),), daemon=True)
    waits.start()
    waits.join(0.5)
    assert waits.is_alive(), "the server may come back"
    shutil.rmtree(folder)
    waits.join(20)
    assert not waits.is_alive()
