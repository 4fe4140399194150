"""A language worker whose code is hostile: tries what user code must not be able to do, and prints one line for each attempt,
"attempt NAME ok" or "attempt NAME refused REASON". What it attacks stands in attack.json beside this file. Leaves processes behind and
waits to be ended.
"""
import ctypes
import http.client
import json
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NO_NEW_PRIVS = 39
MPTCP, LOCAL_PORT_RANGE = 262, 51
CLONE = 56 if platform.machine() == "x86_64" else 220
NODE_PROGRAM = """
const { Worker } = require('worker_threads');
const server = require('http').createServer().listen(0, () => server.close());
require('child_process').execFileSync('/bin/true');
new Worker("require('worker_threads').parentPort.postMessage(1)", { eval: true })
  .on('message', () => require('fs').promises.readFile('/proc/self/status').then(() => process.stdout.write('good')));
"""


def attempt(name, action):
    try:
        action()
        print(f"attempt {name} ok", flush=True)
    except (OSError, AssertionError) as error:
        print(f"attempt {name} refused {error}", flush=True)


def read(path):
    with open(path, "rb") as file:
        assert file.read(1), "nothing in it"


def see(folder, name):
    assert name in os.listdir(folder), "it is not there"


def write(path):
    with open(path, "ab") as file:
        file.write(b"// changed")


def write_memory(pid):
    """Writes a byte that is there already over itself, in the agent's own memory."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        line = next(line for line in maps if " rw-p " in line)
    start = int(line.split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        byte = memory.read(1)
        memory.seek(start)
        memory.write(byte)


def ask(port, page):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", page)
    status = connection.getresponse().status
    assert status == 200, f"status {status}"


def ptrace(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, 0, 0) != 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), "ptrace")
    libc.ptrace(17, pid, 0, 0)


def call(number, *arguments):
    """A system call past the C library. A process that it makes ends at once."""
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(each) for each in arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    if number == CLONE and found == 0:
        os._exit(0)


def listen(port, protocol=0, before=None):
    """For TCP callers of the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if before:
            before(listener)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        with socket.create_connection(listener.getsockname(), timeout=20):
            listener.accept()[0].close()


def listen_everywhere(port):
    with socket.create_server(("::", port), family=socket.AF_INET6):
        pass


def freed_port():
    """One that the kernel chose and that was given back, as the official Python worker's HTTP streaming takes it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return holder.getsockname()[1]


def choose_port(listener, port):
    """Tells the kernel which one to choose."""
    listener.setsockopt(socket.SOL_IP, LOCAL_PORT_RANGE, struct.pack("I", port << 16 | port))


def start_threads_and_processes():
    done = []
    thread = threading.Thread(target=lambda: done.append(subprocess.run(["/bin/true"], check=True)))
    thread.start()
    thread.join()
    assert done, "a thread could not start a process"


def run_node():
    """With a thread, a process and files read in the background."""
    done = subprocess.run(["node", "-e", NODE_PROGRAM], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0 and done.stdout == "good", repr(done.stderr[-500:])


def leave_behind():
    """A process that belongs to nobody any more: forked twice, in a session of its own, deaf to polite signals."""
    if os.fork() != 0:
        return
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    for descriptor in (1, 2):
        os.close(descriptor)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.1)
    os._exit(0)


def main():
    attack = {"agent": 0}
    while not attack["agent"]:  # the test writes it once it knows it
        time.sleep(0.02)
        with open(os.path.join(HERE, "attack.json"), encoding="utf-8") as file:
            attack = json.load(file)
    agent = attack["agent"]
    attempt("own_token", lambda: read(attack["own_token"]))
    attempt("settings", lambda: read(attack["settings"]))
    attempt("other_token", lambda: read(attack["other_token"]))
    attempt("state", lambda: read(os.path.join(attack["state"], "journal")))
    attempt("list_state", lambda: see(attack["state"], "journal"))
    attempt("read_package", lambda: read(attack["package"]))
    attempt("write_package", lambda: write(attack["package"]))
    attempt("agent_memory", lambda: write_memory(agent))
    attempt("agent_environment", lambda: read(f"/proc/{agent}/environ"))
    attempt("agent_pages", lambda: ask(attack["pages"], "/metrics"))
    attempt("agent_probe", lambda: ask(attack["pages"], "/healthz"))
    attempt("ptrace", lambda: ptrace(agent))
    attempt("signal_agent", lambda: os.kill(agent, 0))
    attempt("clone_new_user", lambda: call(CLONE, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0))
    attempt("clone_new_network", lambda: call(CLONE, 0x40000000 | signal.SIGCHLD, 0, 0, 0, 0))
    attempt("clone3", lambda: call(435, 0, 0))
    attempt("io_uring", lambda: call(425, 0, 0))
    attempt("fsmount", lambda: call(432, -1, 0, 0))
    attempt("fspick", lambda: call(433, -1, 0, 0))
    attempt("fixed_port", lambda: listen(attack["port"]))
    attempt("fixed_port_everywhere", lambda: listen_everywhere(attack["port"]))
    attempt("fixed_port_mptcp", lambda: listen(attack["port"], MPTCP))
    attempt("ephemeral_port", lambda: listen(attack["ephemeral_port"]))
    attempt("ephemeral_port_range", lambda: listen(0, 0, lambda each: choose_port(each, attack["ephemeral_port"])))
    attempt("listed_port", lambda: listen(attack["listed_port"]))
    attempt("freed_port", lambda: listen(freed_port()))
    attempt("any_port", lambda: listen(0))
    attempt("threads_and_processes", start_threads_and_processes)
    attempt("node", run_node)
    attempt("own_folder", lambda: write(os.path.join(os.environ.get("TMPDIR", "/tmp"), "mine")))
    privileges = ctypes.CDLL(None).prctl(NO_NEW_PRIVS, 0, 0, 0, 0)
    print(f"facts user={os.getuid()} no_new_privs={privileges} secrets={[k for k in os.environ if 'TOKEN' in k]}", flush=True)
    leave_behind()
    print("attempts are over", flush=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(120)


if sys.argv[1:]:
    main()
