"""A network of its own for each node of a rehearsed cluster: Linux' namespaces, for root, when asked for.

Each node has a device on a switch that no machine is connected to: nodes see each other, and nothing else.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess

_SWITCH = "lapis-switch"
_PREFIX = "10.77"
_NEW_NETWORK, _NEW_HOST_NAME = 0x40000000, 0x04000000  # CLONE_NEWNET, CLONE_NEWUTS


def start(cluster: int) -> tuple[str, str]:
    """The name of a new namespace, and its address. Raises OSError."""
    if os.geteuid() != 0:
        raise PermissionError("LAPIS_NODE_NETWORK=namespaces needs root")
    _make_switch()
    number = next((each for each in range(1, 255) if _ip("netns", "add", _name(cluster, each), may_fail=True)), None)
    if number is None:
        raise OSError(f"all addresses of {_PREFIX}.{cluster}.0/24 are taken")
    name, address, plug = _name(cluster, number), f"{_PREFIX}.{cluster}.{number}", f"node{cluster}x{number}"
    try:
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", plug, "netns", _SWITCH)
        _ip("-n", _SWITCH, "link", "set", plug, "master", "br0", "up")
        _ip("-n", name, "addr", "add", f"{address}/16", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
    except OSError:
        stop(name)
        raise
    return name, address


def stop(name: str) -> None:
    """One already gone is not an error. Its device goes with it once no process is left inside."""
    _ip("netns", "delete", name, may_fail=True)


def enter(name: str) -> None:
    """The calling thread lives in the namespace from now on, on a host of that name."""
    _join(name)
    _call("unshare", _NEW_HOST_NAME)
    socket.sethostname(name)


def listener(name: str, port: int) -> socket.socket:
    """A socket that listens on the loopback device of the namespace, for use outside of it."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _join(name)
        return socket.create_server(("127.0.0.1", port), reuse_port=True)  # the last run's agent may be leaving
    finally:
        _call("setns", home, _NEW_NETWORK)
        os.close(home)


def _join(name: str) -> None:
    namespace = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        _call("setns", namespace, _NEW_NETWORK)
    finally:
        os.close(namespace)


def _make_switch() -> None:
    _ip("netns", "add", _SWITCH, may_fail=True)  # there already, as a rule
    _ip("-n", _SWITCH, "link", "add", "br0", "type", "bridge", may_fail=True)
    _ip("-n", _SWITCH, "link", "set", "br0", "up")


def _name(cluster: int, number: int) -> str:
    return f"lapis-{cluster}-{number}"


def _ip(*arguments: str, may_fail: bool = False) -> bool:
    command = shutil.which("ip", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))
    if command is None:
        raise OSError("LAPIS_NODE_NETWORK=namespaces needs the command ip (apt-get install iproute2)")
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=30)
    if done.returncode and not may_fail:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.returncode == 0


def _call(function: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
