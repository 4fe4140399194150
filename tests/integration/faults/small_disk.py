"""A disk that can be filled: a small tmpfs, mounted where only this process and its children see it.

As root it takes a mount namespace of its own, otherwise a user namespace as well; either way nothing is left behind,
however the test ends.
"""
import ctypes
import errno
import os

from world import Failure

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def _enter_namespace():
    """Once per process, before it has threads."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS) == 0:
        return
    first = os.strerror(ctypes.get_errno())
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        raise Failure(f"the disk cannot be made full: neither a mount namespace ({first}) nor a user namespace "
                      f"({os.strerror(ctypes.get_errno())}) is permitted here; allow one of them to whoever runs the tests")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


class SmallDisk:
    is_apart = False

    def __init__(self, folder, size):
        if not SmallDisk.is_apart:
            _enter_namespace()
            # Fails where the root is no mount point, as in a chroot; then nothing is shared from here either.
            libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
            SmallDisk.is_apart = True
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, f"size={size},mode=700".encode()) != 0:
            raise Failure(f"the disk cannot be made full: mounting a tmpfs is refused with {os.strerror(ctypes.get_errno())}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def fill(self):
        """Until not one more block is to be had."""
        file = os.open(self.path("filler"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for size in (65536, 4096):
                while True:
                    try:
                        os.write(file, b"x" * size)
                    except OSError as problem:
                        if problem.errno != errno.ENOSPC:
                            raise
                        break
        finally:
            os.close(file)

    def free(self):
        os.unlink(self.path("filler"))

    def unmount(self):
        libc.umount2(self.folder.encode(), 2)  # detach: whoever still has a file open keeps it
