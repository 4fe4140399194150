"""The scheduler's admin port while many wait there: whoever leaves frees a place, and probes are answered whoever waits.

  admin_places_test.py BUILD_FOLDER [test...]
"""
import http.client
import socket
import sys
import time

from fleet_processes import Fleet, run_tests, wait_until

PLACES = 64
WAIT_MS = 60000


def waiting_fleet(fleet):
    """With one command that nobody will answer soon; the path that waits for it."""
    fleet.new_token("a")
    fleet.credentials()
    fleet.start(admin_settings="metrics_open = true")
    fleet.agent("a", settings='[exec.wait]\nprogram = "/bin/sleep"\nargs = ["120"]\n')
    worker = fleet.ready("a")
    command = fleet.json("POST", f"/v1/workers/acme/{worker['id']}/commands", {"type": "biz.exec", "payload": {"name": "wait"}})
    return f"/v1/commands/acme/{command['id']}?wait_ms={WAIT_MS}"


def wait_there(fleet, path):
    client = socket.create_connection(("127.0.0.1", fleet.admin_port), timeout=30)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {fleet.admin_token}\r\n\r\n".encode())
    return client


def probe(fleet, path):
    connection = http.client.HTTPConnection("127.0.0.1", fleet.admin_port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError as problem:
        return str(problem)
    finally:
        connection.close()


def probes_are_answered_while_all_places_are_taken(programs):
    with Fleet(programs, tls=False) as fleet:
        path = waiting_fleet(fleet)
        waiting = [wait_there(fleet, path) for _ in range(PLACES + 6)]
        time.sleep(1)
        for each in ("/healthz", "/readyz", "/metrics"):
            assert probe(fleet, each) == 200, f"{each}: {probe(fleet, each)}"
        status, text = fleet.ask("GET", "/v1/workers")
        assert status == 503 and "places" in text, (status, text)
        for client in waiting:
            client.close()
        wait_until("who left freed a place", lambda: fleet.ask("GET", "/v1/workers")[0] == 200, 10)


def a_client_that_leaves_frees_its_place(programs):
    with Fleet(programs, tls=False) as fleet:
        path = waiting_fleet(fleet)
        begun = time.monotonic()
        for _ in range(5):
            clients = [wait_there(fleet, path) for _ in range(PLACES - 4)]
            for client in clients:
                client.close()
        wait_until("the next ones are answered", lambda: fleet.ask("GET", "/v1/workers")[0] == 200, 15)
        assert time.monotonic() - begun < WAIT_MS / 1000 / 2


if __name__ == "__main__":
    run_tests([probes_are_answered_while_all_places_are_taken, a_client_that_leaves_frees_its_place], sys.argv[1:])
