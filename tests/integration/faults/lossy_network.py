"""A network of this process's own, in which packets of chosen ports vanish without a trace.

A proxy cannot do this: its kernel acknowledges for the peer that is cut off. Needs root and `ip`.
"""
import ctypes
import os
import subprocess

from world import check

NEW_NETWORK = 0x40000000  # CLONE_NEWNET


class LossyNetwork:
    """To be made before any thread or process of the world: what is started afterwards is in it."""

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        check(libc.unshare(NEW_NETWORK) == 0, f"no network of its own can be made, which takes root: {os.strerror(ctypes.get_errno())}")
        ip("link", "set", "lo", "up")
        # The table of local addresses is asked first, whatever other rules say. It has to come second here.
        ip("rule", "add", "pref", "100", "lookup", "local")
        ip("rule", "del", "pref", "0")

    def drop(self, ports):
        self._change("add", ports)

    def deliver(self, ports):
        self._change("del", ports)

    @staticmethod
    def _change(verb, ports):
        for port in ports:
            for end in ("sport", "dport"):
                # TCP by its number: a small system has no list of names.
                ip("rule", verb, "pref", "10", "ipproto", "6", end, str(port), "blackhole")


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()}")
