"""Lets MPI in on a node that is not the head: starts the daemon that mpirun asks for. Run as a script.

It listens on the node's address and takes one request for each connection, from whoever knows the run's secret.
"""

import hmac
import json
import os
import socket
import subprocess
import sys
import threading


def main(address: str, port: str) -> None:
    secret = os.environ.pop("LAPIS_MPI_SECRET")
    listener = socket.create_server((address, int(port)))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, secret), daemon=True).start()


def serve(connection: socket.socket, secret: str) -> None:
    with connection, connection.makefile("rwb") as stream:
        request = json.loads(stream.readline(1 << 20))
        if not hmac.compare_digest(str(request["secret"]), secret):
            return
        # As ssh does: mpirun sends a line for a shell, with variables in it.
        code = subprocess.call(["/bin/sh", "-c", request["command"]], stdin=subprocess.DEVNULL)
        stream.write(json.dumps({"code": code}).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
