"""Ports of distributed runs: nobody else's, as long as the run lives."""

from __future__ import annotations

import socket
import subprocess
import sys

from lapis.machine import ports

_RESERVE = "import sys; from lapis.machine import ports; print(*ports.reserve(40), flush=True); sys.stdin.read()"


def test_agents_of_one_machine_never_get_the_same_port() -> None:
    agents = [
        subprocess.Popen([sys.executable, "-c", _RESERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    given = []
    for agent in agents:
        assert agent.stdout is not None
        given += agent.stdout.readline().split()
    for agent in agents:
        agent.communicate()
    assert len(given) == len(set(given)) == 160


def test_a_port_that_somebody_listens_on_is_not_given() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert port not in ports.reserve(1, before=[port])


def test_an_agent_that_takes_over_gets_the_ports_of_the_one_before_it() -> None:
    ended = subprocess.run([sys.executable, "-c", _RESERVE], input="", capture_output=True, text=True, check=True)
    before = [int(port) for port in ended.stdout.split()]
    assert ports.reserve(40, before) == before
