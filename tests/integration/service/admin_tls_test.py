"""TLS on the admin port: what is served, to whom windlass speaks, and a certificate that is replaced.

  admin_tls_test.py BUILD_FOLDER [test...]
"""
import os
import socket
import ssl
import subprocess
import sys

from fleet_processes import Fleet, run_tests, wait_until


def start_with_tls(fleet):
    pem, key = fleet.certificate("admin")
    fleet.start(admin_settings=f'certificate = "{pem}"\nkey = "{key}"')
    fleet.admin_tls = ssl.create_default_context(cafile=fleet.path("tls", "ca.pem"))
    return f"https://127.0.0.1:{fleet.admin_port}"


def windlass_asks_over_tls(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        url = start_with_tls(fleet)
        fleet.agent("a")
        fleet.ready("a")
        authority = fleet.path("tls", "ca.pem")
        assert "READY" in fleet.windlass("--url", url, "--ca", authority, "workers").stdout
        assert "READY" in fleet.windlass("workers", WINDLASS_ADMIN_URL=url, WINDLASS_ADMIN_CA=authority).stdout
        assert "READY" in fleet.windlass("--url", f"https://localhost:{fleet.admin_port}", "--ca", authority, "workers").stdout
        # Nobody vouched for it: no token is shown to it.
        stranger = fleet.windlass("--url", url, "workers", check=False)
        assert stranger.returncode == 3 and "certificate" in stranger.stderr, stranger.stderr
        # Clear text to a TLS port is told from a scheduler that is not there.
        clear = fleet.windlass("--url", url.replace("https", "http"), "workers", check=False)
        assert clear.returncode == 3 and "https" in clear.stderr, clear.stderr
        missing = fleet.windlass("--url", url, "--ca", fleet.path("none.pem"), "workers", check=False)
        assert missing.returncode == 2 and "none.pem" in missing.stderr, missing.stderr


def clear_text_is_not_served_there(programs):
    with Fleet(programs) as fleet:
        start_with_tls(fleet)
        with socket.create_connection(("127.0.0.1", fleet.admin_port), timeout=10) as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"HTTP/1.1 200" not in client.recv(4096)
        assert fleet.ask("GET", "/healthz")[0] == 200


def its_certificate_is_replaced(programs):
    with Fleet(programs) as fleet:
        start_with_tls(fleet)
        served = fleet.served_certificate(fleet.admin_port)
        pem, key = fleet.certificate("next")
        os.rename(pem, fleet.path("tls", "admin.pem"))
        os.rename(key, fleet.path("tls", "admin.key"))
        wait_until("another certificate", lambda: fleet.served_certificate(fleet.admin_port) != served)
        assert fleet.ask("GET", "/v1/workers")[0] == 200


def half_a_setting_is_refused(programs):
    with Fleet(programs) as fleet:
        with open(fleet.path("s.toml"), "w", encoding="utf-8") as file:
            file.write(f'[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n[admin]\n'
                       f'token_file = "{fleet.path("admin-token")}"\nkey = "k.pem"\n')
        done = subprocess.run([fleet.program("windlass-scheduler"), "--config", fleet.path("s.toml"), "--check-config"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "s.toml:5: admin.key needs admin.certificate" in done.stderr, done


run_tests([windlass_asks_over_tls, clear_text_is_not_served_there, its_certificate_is_replaced, half_a_setting_is_refused],
          sys.argv[1:])
