"""What mpirun calls in place of ssh: `mpi_reach HOST COMMAND...`. Hands the command to HOST's agent and waits for it.

Run as a script.
"""

import json
import os
import socket
import sys
import time

PATIENCE = 30.0  # seconds for the other node's server to be up


def main(host: str, *command: str) -> int:
    address, port = json.loads(os.environ["LAPIS_MPI_NODES"])[host]
    connection = reached(address, int(port))
    with connection, connection.makefile("rwb") as stream:
        request = {"secret": os.environ["LAPIS_MPI_SECRET"], "command": " ".join(command)}
        stream.write(json.dumps(request).encode() + b"\n")
        stream.flush()
        answer = stream.readline()
    if not answer:
        print(f"{host} ({address}) closed the connection: its agent is gone", file=sys.stderr)
        return 1
    return int(json.loads(answer)["code"])


def reached(address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=5.0)
            connection.settimeout(None)
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
