"""This machine: processes, commands, mounts, ports, networks, whole files. Light: standard library only."""
