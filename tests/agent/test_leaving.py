"""When the agent of a further node leaves."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

from lapis.agent.__main__ import Agent
from lapis.agent.verdict import Verdict


def test_an_agent_whose_folder_the_head_cleared_away_waits_no_longer_for_a_server_that_has_left(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "1"
    folder.mkdir(parents=True)
    job = {
        "run_id": "r",
        "node": {"index": 1, "count": 2, "head": str(tmp_path)},
        "distribution": {"kind": "mpi"},
        "server": "http://127.0.0.1:9",
        "agent_token": "t",
        "address_file": str(tmp_path / "address.json"),
        "workspace": {"id": "w"},
    }
    (folder / "job.json").write_text(json.dumps(job))
    agent = Agent(str(folder))
    waits = threading.Thread(target=agent._of_all_nodes, args=(Verdict("Completed", "done"),), daemon=True)
    waits.start()
    waits.join(0.5)
    assert waits.is_alive(), "the server may come back"
    shutil.rmtree(folder)
    waits.join(20)
    assert not waits.is_alive()
