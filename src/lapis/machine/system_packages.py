"""The command that installs something on this system: told to users, never run by us."""

from __future__ import annotations

import shutil
import sys

COMPILER = "a C++ compiler"
OPEN_MPI = "Open MPI"
# How each package manager installs, and what it calls the things.
_MANAGERS = {
    "apt-get": ("apt-get install", {COMPILER: "g++ make", OPEN_MPI: "openmpi-bin"}),
    "dnf": ("dnf install", {COMPILER: "gcc-c++ make", OPEN_MPI: "openmpi"}),
    "yum": ("yum install", {COMPILER: "gcc-c++ make", OPEN_MPI: "openmpi"}),
    "zypper": ("zypper install", {COMPILER: "gcc-c++ make", OPEN_MPI: "openmpi4"}),
    "pacman": ("pacman -S", {COMPILER: "gcc make", OPEN_MPI: "openmpi"}),
    "apk": ("apk add", {COMPILER: "g++ make", OPEN_MPI: "openmpi"}),
    "brew": ("brew install", {COMPILER: "gcc make", OPEN_MPI: "open-mpi"}),
}


def command_for(thing: str) -> str:
    """As a user types it. Where the package manager is not known, Debian's: the names are at least known."""
    if thing == COMPILER and sys.platform == "darwin":
        return "xcode-select --install"
    manager = next((name for name in _MANAGERS if shutil.which(name)), "apt-get")
    install, names = _MANAGERS[manager]
    return f"{install} {names[thing]}"
