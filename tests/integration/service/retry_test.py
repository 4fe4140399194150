"""When an agent comes back: as late as it was asked to, and not together with the others.

  retry_test.py BUILD_FOLDER [test...]
"""
import signal
import socket
import sys
import threading
import time

from fleet_processes import Fleet, run_tests, wait_until

HINT_S = 2


class PuttingOff:
    """Answers every upgrade with 503 and writes down when it came."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.dials = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(4096)
                self.dials.append(time.monotonic())
                client.sendall(f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {HINT_S}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())


def retry_after_of_an_upgrade_is_waited(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.new_token("a")
        servers = {}
        for name in ("one", "two", "three"):
            servers[name] = PuttingOff()
            fleet.port = servers[name].port
            fleet.agent(name, token="a")
        waits = []
        for name, server in servers.items():
            wait_until(f"{name} dials again", lambda s=server: len(s.dials) >= 2)
            waits.append(server.dials[1] - server.dials[0])
            line = fleet.agents[name].wait_for("not connected")
            assert "503" in line["reason"] and line["retry_ms"] >= HINT_S * 1000, line
        assert min(waits) >= HINT_S, waits
        assert max(waits) <= 2 * HINT_S + 2, waits
        assert len({round(wait, 2) for wait in waits}) > 1, f"no jitter: {waits}"
        for server in servers.values():
            server.listener.close()


def a_restart_is_waited_for_and_survived(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        scheduler = fleet.start()
        names = ["one", "two", "three"]
        for name in names:
            fleet.agent(name, token="a")
        for name in names:
            fleet.ready(name)
        scheduler.signal(signal.SIGTERM)
        assert scheduler.wait() == 0
        retries = set()
        for name in names:
            fleet.agents[name].wait_for("the session ended", code="E.SESSION.RESTARTING")
            retries.add(fleet.agents[name].wait_for("not connected")["retry_ms"])
        assert len(retries) > 1, f"all come back in the same millisecond: {retries}"
        fleet.start()
        for name in names:
            fleet.ready(name)
            assert fleet.run_command(name)["state"] == "done"


run_tests([retry_after_of_an_upgrade_is_waited, a_restart_is_waited_for_and_survived], sys.argv[1:])
