"""Starts one rank of an MPI job: gives it a log of its own and becomes it. Run as a script, without our packages."""

import os
import sys

rank = os.environ["OMPI_COMM_WORLD_RANK"]
log = os.path.join(os.environ["LAPIS_RANK_LOGS"], f"std_log_{rank}.txt")
output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
os.dup2(output, 1)
os.dup2(output, 2)
for shared_memory in ("vader", "sm"):  # of Open MPI 4 and 5; named by the host, which nodes of one machine share
    os.environ[f"OMPI_MCA_btl_{shared_memory}_backing_directory"] = os.environ["LAPIS_MPI_MEMORY"]
os.environ["AZUREML_PROCESS_NAME"] = f"rank_{rank}"
for ours in ("LAPIS_MPI_SECRET", "LAPIS_MPI_NODES"):
    os.environ.pop(ours, None)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"{sys.argv[1]}: {error.strerror}")
