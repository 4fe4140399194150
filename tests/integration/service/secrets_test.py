"""What the programs think of their own secrets: certificates that have expired, tokens that can be guessed or read by everybody, and
who of several operators did what.

  secrets_test.py BUILD_FOLDER [test...]
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scheduler"))
# pylint: disable=wrong-import-position
from certificates import Certificates  # noqa: E402
from fleet_processes import Fleet, Process, run_tests, wait_until, write_atomically  # noqa: E402

DAY = 24 * 3600
CHANGE = "an operator asked for a change"


def refused(program, config, *arguments):
    """What it says on standard error before it ends with 2."""
    done = subprocess.run([program, "--config", config, *arguments], capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    return done.stderr


def an_expired_certificate_is_refused(programs):
    """At the start, by --check-config and by a reload, in each program that has one."""
    with Fleet(programs) as fleet:
        old = Certificates(fleet.program("windlass"))
        old.issue("fresh", "DNS:localhost", "IP:127.0.0.1")
        old.issue_between("expired", "20200101", "20200201")
        files = f'certificate = "{old.path("expired.pem")}"\nkey = "{old.path("expired.key")}"\n'
        sentence = f"certificate file '{old.path('expired.pem')}' expired on 2020-02-01, so every peer would refuse it; renew it"
        fleet.new_token("a")
        fleet.credentials()
        write_atomically(fleet.path("token"), fleet.tokens["a"])
        scheduler = (f'[server]\nlisten = "127.0.0.1:0"\n[tls]\n{files}[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n'
                     f'[store]\npath = "memory"\n[admin]\nlisten = "127.0.0.1:0"\ntoken_file = "{fleet.path("admin-token")}"\n')
        runtime = f'[server]\nlisten = "127.0.0.1:0"\n[tls]\n{files}[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n'
        agent = (f'[scheduler]\nurl = "wss://127.0.0.1:1"\n[tls]\n{files}[auth]\ntoken_file = "{fleet.path("token")}"\n[worker]\ntenant = "acme"\n'
                 f'state_folder = "{fleet.path("var")}"\n')
        for program, settings in (("windlass-scheduler", scheduler), ("windlass-runtime", runtime), ("windlass-agent", agent)):
            write_atomically(fleet.path("expired.toml"), settings)
            for arguments in (["--check-config"], []):
                said = refused(fleet.program(program), fleet.path("expired.toml"), *arguments)
                assert f"{program}: {sentence}\n" in said, (program, said)

        fleet.start()
        with open(old.path("expired.key"), encoding="ascii") as file:
            write_atomically(fleet.path("tls", "scheduler.key"), file.read())
        with open(old.path("expired.pem"), encoding="ascii") as file:
            write_atomically(fleet.path("tls", "scheduler.pem"), file.read())
        wait_until("the log says that it was not taken", lambda: any("expired on 2020-02-01" in line.get("reason", "") for line in
                   fleet.scheduler.said("files cannot be read again; what was in force stays", what="certificates")))
        old.folder.cleanup()


def the_expiry_is_a_metric_and_a_warning(programs):
    with Fleet(programs) as fleet:
        fleet.certificate("scheduler", days=10)
        fleet.start()
        line = fleet.scheduler.wait_for("a certificate expires soon; renew it", certificate="tls")
        assert line["days_left"] in (9, 10) and line["level"] == "warn", line

        def expiry():
            found = re.search(r'^windlass_certificate_expiry_timestamp_seconds\{certificate="tls"\} (\S+)$', fleet.ask("GET", "/metrics")[1], re.M)
            return float(found[1]) if found else 0
        assert abs(expiry() - (time.time() + 10 * DAY)) < 3600, expiry()
        fleet.certificate("scheduler", days=300)
        wait_until("the renewed certificate is counted", lambda: expiry() > time.time() + 299 * DAY)


def page(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def the_expiry_of_a_runtimes_and_an_agents_certificates_too(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()

        def expires(text, what, days):
            found = re.search(rf'^windlass_(?:runtime_)?certificate_expiry_timestamp_seconds\{{certificate="{what}"\}} (\S+)$', text, re.M)
            return found and abs(float(found[1]) - (time.time() + days * DAY)) < 3600
        certificate, key = fleet.certificate("agent", days=11)
        agent = fleet.agent("a", tls_settings=f'certificate = "{certificate}"\nkey = "{key}"\n', settings='[metrics]\nlisten = "127.0.0.1:0"\n')
        port = agent.wait_for("metrics are served")["port"]
        assert agent.wait_for("a certificate expires soon; renew it", certificate="tls")["days_left"] in (10, 11)
        assert expires(page(port), "tls", 11), page(port)
        fleet.certificate("agent", days=300)
        wait_until("the agent's renewed one is counted", lambda: expires(page(port), "tls", 300))

        certificate, key = fleet.certificate("grpc", days=12)
        os.makedirs(fleet.path("app"))
        write_atomically(fleet.path("runtime.toml"), f"""
[server]
listen = "127.0.0.1:0"
[session]
credentials_file = "{fleet.path('credentials.toml')}"
[grpc]
listen = "127.0.0.1:0"
certificate = "{certificate}"
key = "{key}"
client_authority = "{fleet.path('tls', 'ca.pem')}"
application = "shop"
[admin]
listen = "127.0.0.1:0"
[[application]]
id = "shop"
directory = "{fleet.path('app')}"
language = "node"
""")
        runtime = fleet.agents["runtime"] = Process(fleet.path("runtime.log"), [fleet.program("windlass-runtime"), "--config", fleet.path("runtime.toml")])
        assert runtime.wait_for("a certificate expires soon; renew it", certificate="grpc")["days_left"] in (11, 12)
        port = runtime.wait_for("listening")["admin_port"]
        assert expires(page(port), "grpc", 12), page(port)
        fleet.certificate("grpc", days=300)
        wait_until("the runtime's renewed one is counted", lambda: expires(page(port), "grpc", 300))


def tokens_that_can_be_guessed_or_read_are_refused(programs):
    with Fleet(programs, tls=False) as fleet:
        scheduler = fleet.program("windlass-scheduler")
        settings = (f'[server]\nlisten = "127.0.0.1:0"\n[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n'
                    f'[store]\npath = "memory"\n[admin]\nlisten = "127.0.0.1:0"\ntoken_file = "{fleet.path("weak")}"\n')
        write_atomically(fleet.path("s.toml"), settings)
        write_atomically(fleet.path("weak"), "x\n")
        said = refused(scheduler, fleet.path("s.toml"), "--check-config")
        assert f"admin.token_file is of no use: {fleet.path('weak')}: the token has 1 characters, and 16 are the least; " \
               "make one with `windlass token new`" in said, said

        os.chmod(fleet.folder.name, 0o755)  # else nobody could get at what lies in it
        readable = f": every user of this machine can read this secret; run chmod o-rwx {fleet.path('weak')}"
        write_atomically(fleet.path("weak"), fleet.admin_token)
        os.chmod(fleet.path("weak"), 0o644)
        assert readable in refused(scheduler, fleet.path("s.toml"), "--check-config")
        agent = f'[scheduler]\nurl = "ws://127.0.0.1:1"\n[auth]\ntoken_file = "{fleet.path("weak")}"\n[worker]\ntenant = "acme"\n'
        write_atomically(fleet.path("a.toml"), agent)
        assert readable in refused(fleet.program("windlass-agent"), fleet.path("a.toml"), "--check-config")
        runtime = (f'[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n[scheduler]\nurl = "ws://127.0.0.1:1"\ntenant = "acme"\n'
                   f'token_file = "{fleet.path("weak")}"\n')
        write_atomically(fleet.path("r.toml"), runtime)
        assert readable in refused(fleet.program("windlass-runtime"), fleet.path("r.toml"), "--check-config")
        warned = fleet.windlass("--token-file", fleet.path("weak"), "--url", "http://127.0.0.1:1", "workers", check=False)
        assert "lets every user of this machine read it" in warned.stderr, warned
        os.chmod(fleet.path("weak"), 0o640)  # a group of the service's own is fine
        done = subprocess.run([scheduler, "--config", fleet.path("s.toml"), "--check-config"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done


def tokens_in_settings_that_everybody_can_read_are_refused(programs):
    """As those in files of their own are. From the environment they are nobody's business."""
    with Fleet(programs, tls=False) as fleet:
        os.chmod(fleet.folder.name, 0o755)  # else nobody could get at what lies in it
        session = f'[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n'
        dial = '[scheduler]\nurl = "ws://127.0.0.1:1"\n'
        token = f'token = "{fleet.admin_token}"\n'
        auth = f'[auth]\ntoken_file = "{fleet.path("admin-token")}"\n'
        os.chmod(fleet.path("admin-token"), 0o600)
        for program, key, settings in (
                ("windlass-scheduler", "admin.token", f'{session}[store]\npath = "memory"\n[admin]\n{token}'),
                ("windlass-runtime", "scheduler.token", f'{session}{dial}tenant = "acme"\n{token}'),
                ("windlass-runtime", "admin.token", f'{session}[admin]\n{token}'),
                ("windlass-agent", "auth.token", f'{dial}[worker]\ntenant = "acme"\n[auth]\n{token}'),
                ("windlass-agent", "metrics.token", f'{dial}[worker]\ntenant = "acme"\n{auth}[metrics]\n{token}')):
            path, line = fleet.path("settings.toml"), settings.count("\n")
            write_atomically(path, settings)
            os.chmod(path, 0o644)
            sentence = f"{path}:{line}: {key} is wrong: {path}: every user of this machine can read this secret; run chmod o-rwx {path}."
            for more in (("--check-config",), ()):
                assert sentence in refused(fleet.program(program), path, *more), (program, key, more)
            os.chmod(path, 0o640)
            done = subprocess.run([fleet.program(program), "--config", path, "--check-config"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, (program, key, done)


def a_key_of_functions_that_can_be_guessed_is_refused(programs):
    with Fleet(programs, tls=False) as fleet:
        key, path = fleet.path("function.key"), fleet.path("runtime.toml")
        write_atomically(path, f'[session]\ncredentials_file = "{fleet.path("credentials.toml")}"\n[http]\nkey_file = "{key}"\n')
        write_atomically(key, "x\n")
        sentence = (f"{path}:4: http.key_file is of no use: {key}: the key has 1 characters, and 16 are the least; "
                    "make one with `windlass key new`.")
        for more in (("--check-config",), ()):
            assert sentence in refused(fleet.program("windlass-runtime"), path, *more), more
        write_atomically(key, "sixteen-letters!\n")
        done = subprocess.run([fleet.program("windlass-runtime"), "--config", path, "--check-config"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done


def the_admin_token_does_not_leave_this_machine_in_clear_text(programs):
    with Fleet(programs, tls=False) as fleet:
        done = fleet.windlass("--url", "http://192.0.2.1:7480", "--patience", "1", "workers", check=False)
        assert done.returncode == 2 and "the admin token would go to http://192.0.2.1:7480 in clear text" in done.stderr, done
        for url in ("http://127.0.0.1.example:7480", "http://localhost.example/", "http://1270.0.0.1:1"):
            assert fleet.windlass("--url", url, "--patience", "1", "workers", check=False).returncode == 2, url
        fleet.start()
        for host in ("127.0.0.1", "localhost"):
            assert fleet.windlass("--url", f"http://{host}:{fleet.admin_port}", "workers", check=False).returncode in (0, 3)
        assert fleet.windlass("--url", f"http://127.0.0.1:{fleet.admin_port}", "workers").returncode == 0
        # Who wants it says so; nobody answers there.
        done = fleet.windlass("--url", "http://192.0.2.1:7480", "--clear-text", "--patience", "0.2", "workers", check=False)
        assert done.returncode == 3, done


def operators_have_names_and_tokens_overlap(programs):
    with Fleet(programs, tls=False) as fleet:
        def new(name):
            made = fleet.windlass("token", "new", "--admin", "--name", name, "--out", fleet.path(f"{name}-token")).stdout
            with open(fleet.path(f"{name}-token"), encoding="utf-8") as file:
                token = file.read().strip()
            fleet.secrets.add(token)
            stanza = made[made.index("[[token]]"):]
            assert hashlib.sha256(token.encode()).hexdigest() in stanza and token not in made, made
            return token, stanza
        assert fleet.windlass("token", "new", "--admin", check=False).returncode == 2
        ada, ada_entry = new("ada")
        ada2, ada2_entry = new("ada-2026")
        bob, bob_entry = new("bob")
        late, late_entry = new("late")
        write_atomically(fleet.path("admins.toml"), ada_entry + bob_entry + late_entry.replace("sha256", 'expires = "2020-01-31"\nsha256'))
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(admin_settings=f'tokens_file = "{fleet.path("admins.toml")}"')
        fleet.agent("a")
        worker = fleet.ready("a")

        def rotate(token):
            return fleet.ask("POST", f"/v1/workers/acme/{worker['id']}/rotate", {}, token=token)[0]
        event = CHANGE
        assert rotate(late) == 401 and rotate(ada2) == 401
        for who, token in (("ada", ada), ("bob", bob), ("admin", fleet.admin_token)):
            assert rotate(token) in (200, 202), who
            fleet.scheduler.wait_for(event, action="rotate", who=who)
        # The new token comes in while the old one is good, then the old one goes.
        write_atomically(fleet.path("admins.toml"), ada_entry + ada2_entry)
        wait_until("the new token is good", lambda: rotate(ada2) < 300)
        assert rotate(ada) < 300
        assert rotate(bob) == 401
        write_atomically(fleet.path("admins.toml"), ada2_entry)
        wait_until("the old token is bad", lambda: rotate(ada) == 401)
        fleet.scheduler.wait_for(event, action="rotate", who="ada-2026")
        text = fleet.scheduler.text()
        assert not any(secret in text for secret in fleet.secrets)


SECRET = "a-payload-that-no-log-shows"


def changes_of(worker, digest, size):
    """One request for each route that changes something: its body, and what its line says of it beside who asked."""
    command = {"type": "biz.exec", "payload": {"secret": SECRET}}
    of_worker, of_app = f"/v1/workers/acme/{worker}", "/v1/apps/acme/shop"
    app = {"code_version": "1", "metadata_version": "1", "language": "node", "digest": digest, "settings": {"KEY": SECRET}}
    on_worker = lambda action: {"action": action, "sender.id": worker}  # noqa: E731 pylint: disable=unnecessary-lambda-assignment
    on_app = lambda action: {"action": action, "application": "shop"}  # noqa: E731 pylint: disable=unnecessary-lambda-assignment
    return {
        ("PUT", "/v1/packages/{digest}"): (f"/v1/packages/{digest}?total={size}", None, {"action": "upload", "package": digest}),
        ("PUT", "/v1/apps/{tenant}/{id}"): (of_app, app, on_app("deploy")),
        ("POST", "/v1/apps/{tenant}/{id}/assign"): (f"{of_app}/assign", {}, on_app("assign")),
        ("POST", "/v1/apps/{tenant}/{id}/unassign"): (f"{of_app}/unassign", {}, on_app("unassign")),
        ("POST", "/v1/apps/{tenant}/{id}/split"): (f"{of_app}/split", {"weights": {"1": 1}}, on_app("split")),
        ("POST", "/v1/apps/{tenant}/{id}/invoke"): (f"{of_app}/invoke", {"function": "f", "text": SECRET}, {**on_app("invoke"), "function": "f"}),
        ("POST", "/v1/apps/{tenant}/{id}/commands"): (f"{of_app}/commands", command, {**on_app("submit"), "type": "biz.exec"}),
        ("DELETE", "/v1/apps/{tenant}/{id}"): (of_app, None, on_app("undeploy")),
        ("POST", "/v1/languages/{tenant}/{id}/commands"): ("/v1/languages/acme/node/commands", command,
                                                           {"action": "submit", "language": "node", "type": "biz.exec"}),
        ("POST", "/v1/workers/{tenant}/{id}/commands"): (f"{of_worker}/commands", command, {**on_worker("submit"), "type": "biz.exec"}),
        ("POST", "/v1/workers/{tenant}/{id}/rotate"): (f"{of_worker}/rotate", {}, on_worker("rotate")),
        ("POST", "/v1/workers/{tenant}/{id}/drain"): (f"{of_worker}/drain", {}, on_worker("drain")),
        ("POST", "/v1/workers/{tenant}/{id}/resume"): (f"{of_worker}/resume", {}, on_worker("resume")),
        ("POST", "/v1/workers/{tenant}/{id}/reset"): (f"{of_worker}/reset", {}, on_worker("reset")),
        ("POST", "/v1/workers/{tenant}/{id}/revoke"): (f"{of_worker}/revoke", {}, on_worker("revoke")),
        ("POST", "/v1/workers/{tenant}/{id}/allow"): (f"{of_worker}/allow", {}, on_worker("allow")),
    }


def every_change_has_a_line_that_says_who(programs):
    """For every route of docs/openapi.json that changes something, whether it was refused or not, and without what was sent."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/openapi.json"), encoding="utf-8") as file:
        paths = json.load(file)["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods if method in ("put", "post", "delete", "patch")}
    package = b"not much of a package"
    with Fleet(programs, tls=False) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        fleet.agent("a")
        changes = changes_of(fleet.ready("a")["id"], hashlib.sha256(package).hexdigest(), len(package))
        assert set(changes) == routes, f"without a line of this table: {routes - set(changes)}; without a route: {set(changes) - routes}"
        for (method, _), (path, body, line) in changes.items():
            fields = {"who": "admin", **line}
            assert not fleet.scheduler.said(CHANGE, **fields), fields
            status, text = fleet.ask(method, path, body, raw=package if "/packages/" in path else None)
            assert status not in (400, 401, 405), (method, path, status, text)
            fleet.scheduler.wait_for(CHANGE, **fields)
            found = fleet.scheduler.said(CHANGE, **fields)
            assert len(found) == 1 and found[0]["level"] == "info", found
        assert SECRET not in fleet.scheduler.text()


run_tests([an_expired_certificate_is_refused, the_expiry_is_a_metric_and_a_warning, the_expiry_of_a_runtimes_and_an_agents_certificates_too,
           tokens_that_can_be_guessed_or_read_are_refused, tokens_in_settings_that_everybody_can_read_are_refused,
           a_key_of_functions_that_can_be_guessed_is_refused,
           the_admin_token_does_not_leave_this_machine_in_clear_text, operators_have_names_and_tokens_overlap,
           every_change_has_a_line_that_says_who], sys.argv[1:])
