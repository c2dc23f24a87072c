"""Mounts, users and processes of its own for a process: the calls of Linux, without any program that wraps them.

What is placed in a mount namespace is cloned first, then covered, then put back where it was: so a folder can be hidden
and a part of it stay, at the same path. With `users`, a clone shows files of root as files of another user, and what
that user writes there belongs to root outside: nothing on the disk changes its owner.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any, Mapping, NoReturn, Sequence

MOUNTS, USERS, PROCESSES = 0x00020000, 0x10000000, 0x20000000  # CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT, _DUMPABLE = 38, 1, 4  # of prctl
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # of syscall, the same on every machine
_HERE, _RECURSIVE, _THE_FILE_ITSELF, _CLONE, _CLOSE_ON_EXEC = -100, 0x8000, 0x1000, 1, 0o2000000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _MAPPED = 0x1, 0x2, 0x4, 0x100000
_HEAR_FROM_OUTSIDE = 0x84000  # MS_REC | MS_SLAVE
_HIGHEST = 0xFFFFFFFE  # of all users

_libc = ctypes.CDLL(None, use_errno=True)


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users")]


def leave(what: int) -> None:
    """The calling process has these of its own from now on; new processes, the ones it forks."""
    _call("unshare", what)


def own_mounts() -> None:
    """What is mounted outside from now on may come in, nothing gets out."""
    leave(MOUNTS)
    _call("mount", None, b"/", None, ctypes.c_ulong(_HEAR_FROM_OUTSIDE), None)


def own_users() -> None:
    """A user namespace in which we are who we are, and nobody else is anybody."""
    user, group = os.geteuid(), os.getegid()
    leave(USERS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        _write(f"/proc/self/{name}", text)


class UsersAhead:
    """A user namespace in which files of root are files of another user, and all others what they are. For root.

    It takes a process that enters it, and some milliseconds until that runs: begin early, and open it when needed.
    """

    def __init__(self) -> None:
        self._ready, tell = os.pipe()
        wait, self._stay = os.pipe()
        self._holder = os.fork()
        if self._holder == 0:
            try:
                os.close(self._stay)
                _call("prctl", *map(ctypes.c_ulong, (_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)))
                leave(USERS)
                os.write(tell, b"x")
                os.read(wait, 1)
            finally:
                os._exit(0)
        os.close(tell)
        os.close(wait)

    def open(self, user: int) -> int:
        """To be called once, or `dismiss`."""
        try:
            os.read(self._ready, 1)
            for name in ("uid_map", "gid_map"):
                rest = f"1 1 {user - 1}\n{user + 1} {user + 1} {_HIGHEST - user}"
                _write(f"/proc/{self._holder}/{name}", f"0 {user} 1\n{rest}")
            return os.open(f"/proc/{self._holder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            self.dismiss()

    def dismiss(self) -> None:
        os.close(self._ready)
        os.close(self._stay)
        os.kill(self._holder, signal.SIGKILL)
        os.waitpid(self._holder, 0)


def lay_out(
    hidden: Sequence[str], wanted: Mapping[str, bool], users: int | None, instead: Mapping[str, str] | None = None
) -> None:
    """Hide folders, and put back what is `wanted` of them: True where it may be written to.

    With `users`, folders on the way that are closed to others are opened, and nothing but what is wanted is in them.
    Files get another content `instead` of what they have outside.
    """
    paths = {os.path.realpath(path): path for path in wanted if os.path.exists(path)}
    trees = {real: _clone(real, users, read_only=not wanted[path]) for real, path in paths.items()}
    covers = {os.path.realpath(path) for path in hidden}
    covers |= set(filter(None, map(_first_closed, trees))) if users is not None else set()
    covers -= set(trees)
    covered = []
    for path in sorted({*trees, *covers}):  # what holds another comes before it
        if path in covers and os.path.isdir(path):
            _call("mount", b"lapis", os.fsencode(path), b"tmpfs", ctypes.c_ulong(0), b"mode=755,size=4m")
            covered.append(path)
        if path in trees:
            _place(trees[path], path)
    for real, path in paths.items():
        if real != path and not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(real, path)
    for path, content in (instead or {}).items() if covered else ():
        _replace(path, content, os.path.join(covered[0], "instead-of-" + os.path.basename(path)))
    for path in covered:
        _set(path, _Attributes(set=_READ_ONLY), recursive=False)


def no_more_privileges() -> None:
    """Programs that make root of whoever starts them do not do so for us."""
    _call("prctl", *map(ctypes.c_ulong, (_NO_NEW_PRIVILEGES, 1, 0, 0, 0)))


def closed_to_others_of_our_user() -> None:
    """Neither memory nor variables of this process may be read by another one, be it of the same user."""
    _call("prctl", *map(ctypes.c_ulong, (_DUMPABLE, 0, 0, 0, 0)))


def own_processes() -> None:
    """Return in a new process that sees itself and what it starts, and nothing else.

    The process that calls becomes its shadow: it ends as the new one does, and takes it along when it is killed. When
    the new one has ended, nothing that it started lives on.
    """
    leave(PROCESSES)
    told, tell = os.pipe()
    first = os.fork()
    if first:
        os.close(tell)
        _shadow(first, told)
    _call("prctl", *map(ctypes.c_ulong, (_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)))
    _call("mount", b"proc", b"/proc", b"proc", ctypes.c_ulong(0xE), None)  # without setuid, devices, programs
    script = os.fork()
    if script:
        closed_to_others_of_our_user()
        _reap_until(script, tell)
    os.close(told)
    os.close(tell)


def _shadow(first: int, told: int) -> NoReturn:
    _ignore_signals()
    _close_all_but(told)
    os.waitpid(first, 0)
    said = os.read(told, 16)
    status = int(said) if said else signal.SIGKILL
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _reap_until(script: int, tell: int) -> NoReturn:
    """The first process of a namespace: orphans are its children, and when it ends, all end."""
    _ignore_signals()
    _close_all_but(tell)
    ended, status = 0, 0
    while ended != script:
        ended, status = os.wait()
    os.write(tell, b"%d" % status)
    os._exit(0)


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def _close_all_but(kept: int) -> None:
    """What its end tells others, such as a pipe's, is for the script alone to tell."""
    highest = os.sysconf("SC_OPEN_MAX")
    os.closerange(0, kept)
    os.closerange(kept + 1, highest)


def _first_closed(path: str) -> str | None:
    """The highest folder above `path` that others may not enter."""
    parents = []
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        parents.append(path)
    return next((each for each in reversed(parents) if not os.stat(each).st_mode & 0o001), None)


def _clone(path: str, users: int | None, read_only: bool) -> int:
    tree = _syscall(_OPEN_TREE, _HERE, os.fsencode(path), _CLONE | _RECURSIVE | _CLOSE_ON_EXEC)
    flags = _NO_SETUID | _NO_DEVICES | (_READ_ONLY if read_only else 0)
    if users is not None:
        for recursive in (True, False):  # where what is mounted below cannot, the rest may
            try:
                _set_tree(tree, _Attributes(set=_MAPPED, users=users), recursive)
                break
            except OSError:
                pass  # a file system that cannot: what its own permissions say counts
    _set_tree(tree, _Attributes(set=flags))
    return tree


def can_map_users(path: str, users: int) -> bool:
    tree = _syscall(_OPEN_TREE, _HERE, os.fsencode(path), _CLONE | _CLOSE_ON_EXEC)
    try:
        _set_tree(tree, _Attributes(set=_MAPPED, users=users), recursive=False)
    except OSError:
        return False
    finally:
        os.close(tree)
    return True


def _place(tree: int, path: str) -> None:
    if not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(f"/proc/self/fd/{tree}"):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    _syscall(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(path), 0x4)  # from the tree itself
    os.close(tree)


def _replace(path: str, content: str, draft: str) -> None:
    if not os.path.exists(path):
        return
    with open(draft, "w") as file:
        file.write(content)
    os.chmod(draft, 0o644)
    _place(_clone(draft, None, read_only=True), path)
    os.unlink(draft)


def _set_tree(tree: int, attributes: _Attributes, recursive: bool = True) -> None:
    how = _THE_FILE_ITSELF | (_RECURSIVE if recursive else 0)
    _syscall(_MOUNT_SETATTR, tree, b"", how, ctypes.byref(attributes), ctypes.sizeof(attributes))


def _set(path: str, attributes: _Attributes, recursive: bool) -> None:
    how = _RECURSIVE if recursive else 0
    _syscall(_MOUNT_SETATTR, _HERE, os.fsencode(path), how, ctypes.byref(attributes), ctypes.sizeof(attributes))


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())  # in one piece: the kernel takes no second
    finally:
        os.close(file)


def _syscall(number: int, *arguments: Any) -> int:
    _libc.syscall.restype = ctypes.c_long
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *given), f"system call {number}")


def _call(function: str, *arguments: Any) -> int:
    return _checked(getattr(_libc, function)(*arguments), function)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
