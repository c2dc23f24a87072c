"""Our file systems in the kernel's table of mounts: made, found, and taken away. Linux only.

Root asks the kernel itself; others need `fusermount3`, which Linux desktops have.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re

DEVICE = "/dev/fuse"
_TYPE = "lapis"
_NO_WRITES = 1 | 2 | 4 | 1024  # MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOATIME
_NOW = 1 | 2  # MNT_FORCE: what is under way fails; MNT_DETACH: whoever uses it does not hold it
_HELPERS = ("fusermount3", "fusermount")


def impossible() -> str | None:
    """Why nothing can be mounted here; None if it is worth a try."""
    if not os.path.exists(DEVICE):
        return f"this machine has no {DEVICE}"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} may not be opened by this user"
    if os.geteuid() != 0 and _without_new_privileges():
        return "code that runs apart from the server may not mount anything itself; an input of the run can be a mount"
    if os.geteuid() != 0 and _helper() is None:
        return f"a user who is not root needs {_HELPERS[0]} (Debian package fuse3)"
    return None


def _without_new_privileges() -> bool:
    try:
        with open("/proc/self/status") as file:
            return "NoNewPrivs:\t1" in file.read()
    except OSError:
        return False


def attach(point: str) -> int:
    """Mount a file system of ours at a folder; the open device that its requests come from."""
    if os.geteuid() != 0:
        return _attach_as_user(point)
    device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    try:
        _call("mount", _TYPE, point, f"fuse.{_TYPE}", _NO_WRITES, options)
    except OSError:
        os.close(device)
        raise
    _read_ahead(point)
    return device


def detach(point: str) -> None:
    """Take a mount away at once, in use or not; one already gone is not an error."""
    if os.geteuid() != 0:
        import subprocess

        helper = _helper()
        if helper is not None:
            subprocess.run([helper, "-q", "-u", "-z", "--", point], stderr=subprocess.DEVNULL, check=False)
        return
    try:
        _call("umount2", point, _NOW)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOENT):
            raise


def detach_below(folder: str) -> None:
    """Take away all that we mounted in a folder."""
    for point in points_below(folder):
        detach(point)


def clear_below(folder: str) -> None:
    """Take away what nobody answers for any more: its process was killed."""
    for point in points_below(folder):
        if not _answers(point):
            detach(point)
            with contextlib.suppress(OSError):
                os.rmdir(point)


def points_below(folder: str) -> list[str]:
    """Where we have mounted something in a folder."""
    try:
        with open("/proc/self/mountinfo") as file:
            rows = [line.split() for line in file]
    except FileNotFoundError:  # not Linux
        return []
    ours = [_unquoted(row[4]) for row in rows if row[row.index("-") + 1] == f"fuse.{_TYPE}"]
    return [point for point in ours if point.startswith(os.path.join(os.path.realpath(folder), ""))]


def _unquoted(text: str) -> str:
    """The kernel writes blanks and backslashes as three octal digits."""
    return re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), text)


def _answers(point: str) -> bool:
    try:
        os.statvfs(point)  # not stat(): the kernel may still know that by heart
    except OSError as error:
        return error.errno not in (errno.ENOTCONN, errno.ECONNABORTED)  # the second for who asks while it ends
    return True


def _helper() -> str | None:
    import shutil

    return next(filter(None, map(shutil.which, _HELPERS)), None)


def _attach_as_user(point: str) -> int:
    import socket
    import subprocess

    helper = _helper()
    if helper is None:
        raise OSError(errno.ENOENT, "not installed", _HELPERS[0])
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [helper, "-o", f"ro,nosuid,nodev,fsname={_TYPE},subtype={_TYPE}", "--", point],
            env=dict(os.environ, _FUSE_COMMFD=str(theirs.fileno())),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            raise OSError(errno.EPERM, done.stderr.decode(errors="replace").strip(), point)
        _, devices, _, _ = socket.recv_fds(ours, 1, 1)  # type: ignore[attr-defined,unused-ignore]
    return int(devices[0])


def _read_ahead(point: str) -> None:
    """Let the kernel ask for a megabyte at once, not for 128 KB: an eighth of the round trips."""
    with contextlib.suppress(OSError, StopIteration):
        with open("/proc/self/mountinfo") as file:
            number = next(row[2] for row in map(str.split, file) if _unquoted(row[4]) == point)
        with open(f"/sys/class/bdi/{number}/read_ahead_kb", "w") as file:
            file.write("1024")


def _call(function: str, *arguments: str | int) -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    given = [os.fsencode(each) if isinstance(each, str) else ctypes.c_ulong(each) for each in arguments]
    if getattr(library, function)(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(arguments[1] if function == "mount" else arguments[0]))
