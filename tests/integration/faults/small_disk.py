"""A disk that can be filled: a small tmpfs, mounted where only this process and its children see it.

As root it takes a mount namespace of its own, otherwise a user namespace as well; either way nothing is left behind,
however the test ends. Where neither is permitted (a container without the capability to mount), a preloaded library
refuses writes below the folder with ENOSPC instead; the test says so.
"""
import ctypes
import errno
import mmap
import os
import tempfile

from world import Failure

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


class NotPermitted(Exception):
    pass


def problem():
    return os.strerror(ctypes.get_errno())


def enter_namespace():
    """Once per process, before it has threads."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS) == 0:
        return
    first = problem()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        raise NotPermitted(f"neither a mount namespace ({first}) nor a user namespace ({problem()}) is permitted")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


class MountedDisk:
    is_apart = False

    def __init__(self, folder, size):
        if not MountedDisk.is_apart:
            enter_namespace()
            # Fails where the root is no mount point, as in a chroot; then nothing is shared from here either.
            libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
            MountedDisk.is_apart = True
        self.folder = folder
        self.environment = {}
        if libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, f"size={size},mode=700".encode()) != 0:
            raise NotPermitted(f"mounting a tmpfs is refused ({problem()})")

    def fill(self):
        """Until not one more block is to be had."""
        file = os.open(self.path("filler"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for size in (65536, 4096):
                self.write_all(file, b"x" * size)
        finally:
            os.close(file)

    @staticmethod
    def write_all(file, block):
        while True:
            try:
                os.write(file, block)
            except OSError as refused:
                if refused.errno != errno.ENOSPC:
                    raise
                return

    def free(self):
        os.unlink(self.path("filler"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def unmount(self):
        libc.umount2(self.folder.encode(), 2)  # detach: whoever still has a file open keeps it


class PretendedDisk:
    def __init__(self, folder, shim):
        if not os.path.exists(shim):
            raise Failure(f"{shim} is missing; build it with ./dev build release fault_disk")
        self.folder = folder
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(b"\0")
        self.switch_path = file.name
        with open(self.switch_path, "r+b") as file:
            self.switch = mmap.mmap(file.fileno(), 1)
        self.environment = {"LD_PRELOAD": os.path.abspath(shim), "WINDLASS_TEST_DISK_FILE": self.switch_path,
                            "WINDLASS_TEST_DISK_FOLDER": folder,
                            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def fill(self):
        self.switch[0] = 1

    def free(self):
        self.switch[0] = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def unmount(self):
        os.unlink(self.switch_path)


def small_disk(options, folder, size):
    try:
        if os.environ.get("WINDLASS_TEST_NO_MOUNT"):
            raise NotPermitted("WINDLASS_TEST_NO_MOUNT is set")
        return MountedDisk(folder, size)
    except NotPermitted as refused:
        print(f"no small disk can be mounted: {refused}; a preloaded library refuses writes with ENOSPC instead", flush=True)
        return PretendedDisk(folder, os.path.join(options.programs, "tests/integration/faults/libfault_disk.so"))
