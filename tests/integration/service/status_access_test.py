"""Who learns what a runtime and an agent do: their metrics and status are this machine's or a token's. And the other way round, a
runtime that shows a certificate to a scheduler that wants one; and which TLS suites are spoken.

  status_access_test.py BUILD_FOLDER [test...]
"""
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys

from fleet_processes import Fleet, Process, run_tests, wait_until, write_atomically

EVERYWHERE = "0.0.0.0"
STRANGER = 65519  # a user that nobody has


def get(port, path, token=None, tls=None, source=None, host=None):
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=tls) if tls else \
        http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=source)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", path, headers={**headers, "Host": host} if host else headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def get_as_stranger(port, path, source=None):
    """As another user of this machine, which only root can become."""
    if os.geteuid() != 0:
        return None, ""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            with os.fdopen(write, "w", encoding="utf-8") as file:
                json.dump(get(port, path, source=source), file)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as file:
        said = file.read()
    os.waitpid(child, 0)
    return tuple(json.loads(said))


def check_own_user_only(port, pages, probe, table):
    for page in pages:
        assert get(port, page)[0] == 200, page
        assert get(port, page, host=f"LocalHost:{port}")[0] == 200, page
        # A name of a web page's own that leads here, in our own user's browser.
        assert get(port, page, host=f"pages.example:{port}")[0] == 403, page
        status, body = get_as_stranger(port, page)
        assert status in (None, 403), (page, status, body)
        assert not body or f"set token_file in [{table}]" in json.loads(body)["detail"], body
        # Nor on the strength of a connection of ours, whose port it has on another loopback address.
        with socket.create_connection(("127.0.0.1", port)) as ours:
            assert get_as_stranger(port, page, ("127.0.0.2", ours.getsockname()[1]))[0] in (None, 403), page
    assert get_as_stranger(port, probe)[0] in (None, 200, 503)
    assert get(port, probe, host="pages.example")[0] in (200, 503)


def runtime(fleet, settings, name="runtime"):
    write_atomically(fleet.path(f"{name}.toml"), f'[server]\nlisten = "127.0.0.1:0"\n[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n'
                     f'{settings}')
    fleet.agents[name] = Process(fleet.path(f"{name}.log"), [fleet.program("windlass-runtime"), "--config", fleet.path(f"{name}.toml")])
    return fleet.agents[name]


def check_access(port, paths, token, tls=None):
    for path in paths:
        assert get(port, path, tls=tls)[0] == 401, path
        assert get(port, path, "wrong-wrong-wrong-wrong", tls)[0] == 401, path
        assert get(port, path, token, tls)[0] == 200, path


def a_runtime_shows_its_status_to_whoever_has_the_token(programs):
    with Fleet(programs) as fleet:
        admin = f'[admin]\nlisten = "{EVERYWHERE}:0"\n'
        bad = runtime(fleet, admin, "bad")
        assert bad.wait() == 2
        assert "admin.listen would answer everybody on the network; set admin.token_file or admin.tokens_file" in bad.text(), bad.text()
        shown = runtime(fleet, admin + f'token_file = "{fleet.path("admin-token")}"\n', "shown")
        assert shown.wait() == 2
        assert "admin.listen would show every token to the network in clear text" in shown.text(), shown.text()
        certificate, key = fleet.certificate("runtime")
        good = runtime(fleet, admin + f'token_file = "{fleet.path("admin-token")}"\ncertificate = "{certificate}"\nkey = "{key}"\n', "good")
        port = good.wait_for("listening")["admin_port"]
        tls = ssl.create_default_context(cafile=fleet.path("tls", "ca.pem"))
        check_access(port, ("/status", "/metrics"), fleet.admin_token, tls)
        assert get(port, "/health", tls=tls)[0] in (200, 503)
        assert "windlass_runtime_certificate_expiry_timestamp_seconds" in get(port, "/metrics", fleet.admin_token, tls)[1]
        told = runtime(fleet, admin + "open = true\n", "told")
        assert get(told.wait_for("listening")["admin_port"], "/status")[0] == 200
        assert get_as_stranger(told.wait_for("listening")["admin_port"], "/status")[0] in (None, 200)
        alone = runtime(fleet, '[admin]\nlisten = "127.0.0.1:0"\n', "alone")
        check_own_user_only(alone.wait_for("listening")["admin_port"], ("/status", "/metrics"), "/health", "admin")


def an_agent_shows_its_metrics_to_whoever_has_the_token(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        listen = f'[metrics]\nlisten = "{EVERYWHERE}:0"\n'
        bad = fleet.agent("bad", "a", listen)
        assert bad.wait() == 2
        assert "metrics.listen would answer everybody on the network; set metrics.token_file" in bad.text(), bad.text()
        good = fleet.agent("good", "a", listen + f'token_file = "{fleet.path("admin-token")}"\nanywhere = true\n')
        port = good.wait_for("metrics are served")["port"]
        check_access(port, ("/metrics",), fleet.admin_token)
        assert get(port, "/healthz")[0] == 200
        wait_until("it is ready", lambda: get(port, "/readyz")[0] == 200)
        alone = fleet.agent("alone", "a", '[metrics]\nlisten = "127.0.0.1:0"\n')
        port = alone.wait_for("metrics are served")["port"]
        assert "heartbeat_sent_total" in get(port, "/metrics")[1]
        check_own_user_only(port, ("/metrics",), "/healthz", "metrics")
        assert get(port, "/elsewhere")[0] == 404


def a_runtime_shows_its_certificate_to_a_scheduler_that_requires_one(programs):
    with Fleet(programs) as fleet:
        certificate, key = fleet.certificate("runtime-1", "DNS:runtime-1.example")
        fleet.credentials('[[certificate]]\ntenant = "acme"\nsan = "DNS:runtime-1.example"\nrole = "runtime"\n')
        fleet.start(tls_settings=f'client_certificates = "required"\nclient_authority = "{fleet.path("tls", "ca.pem")}"')
        link = f'[scheduler]\nurl = "wss://127.0.0.1:{fleet.port}"\nauthority = "{fleet.path("tls", "ca.pem")}"\ntenant = "acme"\n'
        own = '[runtime]\nid = "runtime-1"\n[admin]\nlisten = "127.0.0.1:0"\n'
        shows = runtime(fleet, own + link + f'certificate = "{certificate}"\nkey = "{key}"\n', "shows")
        shows.wait_for("the session to the scheduler is established")
        known = wait_until("the scheduler knows it", lambda: fleet.json("GET", "/v1/runtimes")["runtimes"])
        assert known[0]["id"] == "runtime-1" and known[0]["state"] == "READY", known
        # A renewed certificate is shown from the next connection on.
        fleet.certificate("runtime-1", "DNS:runtime-1.example")
        shows.wait_for("files were read again", what="scheduler certificates")
        before = len(shows.said("the session to the scheduler is established"))
        fleet.json("POST", "/v1/workers/acme/runtime-1/reset", {})
        wait_until("it is back", lambda: len(shows.said("the session to the scheduler is established")) > before)

        nobody = runtime(fleet, own + link, "nobody")
        assert nobody.wait() == 2
        assert "scheduler needs a way to prove who this runtime is" in nobody.text(), nobody.text()


def only_suites_with_forward_secrecy_are_spoken(programs):
    """With a key that could do static RSA, which an elliptic one cannot."""
    openssl = shutil.which("openssl")
    with Fleet(programs) as fleet:
        files = fleet.path("tls", "scheduler.pem"), fleet.path("tls", "scheduler.key")
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        os.chmod(files[1], 0o600)
        fleet.start()

        def speaks(*arguments):
            done = subprocess.run([openssl, "s_client", "-connect", f"127.0.0.1:{fleet.port}", *arguments], capture_output=True, text=True,
                                  check=False, timeout=20, input="")
            return "Cipher is (NONE)" not in done.stdout and done.returncode == 0
        assert speaks("-tls1_3") and speaks("-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256")
        for suite in ("AES128-GCM-SHA256", "AES256-SHA", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384", "DHE-RSA-AES128-GCM-SHA256"):
            assert not speaks("-tls1_2", "-cipher", suite + ":@SECLEVEL=0"), suite


run_tests([a_runtime_shows_its_status_to_whoever_has_the_token, an_agent_shows_its_metrics_to_whoever_has_the_token,
           a_runtime_shows_its_certificate_to_a_scheduler_that_requires_one, only_suites_with_forward_secrecy_are_spoken], sys.argv[1:])
