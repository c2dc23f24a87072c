"""What the logs of a run are called, for whoever writes, ships or reads them."""

from __future__ import annotations

STD_LOG = "user_logs/std_log.txt"  # what the script prints
_OF_RANK = r"user_logs/std_log_(\d+)\.txt"


def of_rank(rank: int) -> str:
    """What one of several processes prints."""
    return f"user_logs/std_log_{rank}.txt"


def rank_of(name: str) -> int | None:
    """Whose log it is; None if it is not that of a rank."""
    import re

    found = re.fullmatch(_OF_RANK, name)
    return int(found[1]) if found else None


def file_of(name: str) -> str:
    """The file of a node's folder that a log is printed to."""
    return name.rpartition("/")[2]
