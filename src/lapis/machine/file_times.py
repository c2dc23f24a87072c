"""Whether the times of a file tell that it was changed, however that was done.

A write through a memory map changes them only when a page becomes writable, which happens once for many writes. After
fsync each page is written and has to become writable again, so that the next write to it is seen; on the file systems
that keep times so, that is. In memory, and over a network, they do not.
"""

from __future__ import annotations

import os

_TELLING = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs"})


def tell_from_now_on(path: str) -> bool:
    """Whether any change after this call shows in the times of the file, or in its inode or size."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        device = os.fstat(descriptor).st_dev
        if _kind(f"{os.major(device)}:{os.minor(device)}") not in _TELLING:
            return False
        os.fsync(descriptor)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _kind(device: str) -> str:
    """The file system on a device, as the kernel names it."""
    try:
        with open("/proc/self/mountinfo") as mounts:
            for line in mounts:
                fields = line.split()
                if fields[2] == device:
                    return fields[fields.index("-") + 1]
    except (OSError, ValueError, IndexError):
        pass
    return ""
