"""What a new user meets: every bad setting, flag and file gets one sentence that says what, where and what to do, and exit code 2;
the example files have every setting there is.

  settings_test.py BUILD_FOLDER [test...]
"""
import hashlib
import os
import re
import sqlite3
import subprocess
import sys

from fleet_processes import Fleet, run_tests

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
GOOD = '[session]\ncredentials_file = "credentials.toml"\n[admin]\ntoken_file = "admin-token"\n'
AGENT = '[scheduler]\nurl = "ws://127.0.0.1:1"\n[auth]\ntoken_file = "admin-token"\n[worker]\ntenant = "acme"\n'

# Settings, and what the one line on standard error must hold.
SCHEDULER_MISTAKES = [
    ("[server]\nlisten = 12\n" + GOOD, "s.toml:2: server.listen must be text"),
    ('[server]\nlisten = "127.0.0.1:99999"\n' + GOOD, "s.toml:2: server.listen must be a numeric address and a port"),
    ('[server]\nlisten = "localhost:7443"\n' + GOOD, "s.toml:2: server.listen must be a numeric address, not a name"),
    ('[server]\nlisten = "0.0.0.0:7443"\n' + GOOD, "s.toml:2: server.listen would show every token to the network"),
    ("[server]\nloops = 0\n" + GOOD, "s.toml:2: server.loops must be from 1 to 64"),
    ("[server]\nlopos = 1\n" + GOOD, "s.toml:2: server.lopos is not a known setting; remove it or correct its name"),
    ("[serverr]\n" + GOOD, "s.toml:1: serverr is not a known setting"),
    ("[server\n" + GOOD, "s.toml:1: is not TOML"),
    ('[tls]\ncertificate = "c.pem"\n' + GOOD, "s.toml:2: tls.certificate needs tls.key too"),
    ('[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n' + GOOD, "certificate file 'c.pem' cannot be read: No such file"),
    ('[tls]\nclient_certificates = "required"\n' + GOOD, "s.toml:2: tls.client_certificates needs client_authority"),
    (GOOD + '[store]\nsync = "maybe"\n', 's.toml:6: store.sync must be one of full, normal, not "maybe"'),
    (GOOD + '[store]\npath = "foreign.db"\n', "foreign.db is an SQLite database of another program; it was left as it is"),
    (GOOD + '[store]\npath = "text.db"\n', "text.db is not an SQLite database; it was left as it is"),
    (GOOD + "[tenants.acme]\nsession_max = 5\n", "s.toml:6: tenants.acme.session_max is not a known setting; remove it or correct its name"),
    (GOOD + "[tenants.acme]\nsessions_max = 0\n", "s.toml:6: tenants.acme.sessions_max must be from 1 to 10000000"),
    (GOOD + "[tenants.acme]\nmem_pct_max = 101\n", "s.toml:6: tenants.acme.mem_pct_max must be from 0 to 100"),
    (GOOD + "[tenants.acme]\nheartbeat_misses_degraded = 9\n",
     "s.toml:5: tenants.acme.heartbeat_misses_lost must not be less than heartbeat_misses_degraded"),
    (GOOD + '[tenants.acme]\nheartbeat = "60s"\nlost_after = "60s"\n',
     "s.toml:7: tenants.acme.lost_after must be longer than the tenant's heartbeat: a quiet worker is heard only so often"),
    (GOOD + '[tenants.acme]\nlost_after = "20s"\n', "s.toml:6: tenants.acme.lost_after must be longer than the tenant's heartbeat"),
    (GOOD + '[tenants.acme]\nschema_mode = "lax"\n', 's.toml:6: tenants.acme.schema_mode must be one of strict, warn, count, not "lax"'),
    (GOOD + '[tenants.""]\n', "s.toml:5: tenants. must be named after a tenant, 1 to 64 printable ASCII characters"),
    (GOOD + "[tenants]\nsessions_max = 5\n", "s.toml:6: tenants.sessions_max is not a known setting"),
    (GOOD + "[[tenants]]\n", "s.toml:5: tenants is not a known setting"),
    (GOOD + '[commands]\ntimeout = "5 parsecs"\n', 's.toml:6: commands.timeout must be text with a unit, such as "250ms"'),
    (GOOD + 'listen = "0.0.0.0:7480"\n', "s.toml:5: admin.listen would show every token to the network"),
    ('[session]\ncredentials_file = "credentials.toml"\n[admin]\ntoken_file = "none"\n', "s.toml:4: admin.token_file is of no use: none: cannot be read"),
    ('[session]\ncredentials_file = "none.toml"\n[admin]\ntoken_file = "admin-token"\n', "none.toml: cannot be read"),
]
AGENT_MISTAKES = [
    (AGENT.replace("ws://127.0.0.1:1", "http://x"), "s.toml:2: scheduler.url is no address"),
    (AGENT.replace("admin-token", "none"), "s.toml:4: auth.token_file is wrong: none: cannot be read"),
    (AGENT.replace("acme", "a b"), "s.toml:6: worker.tenant must be 1 to 64 letters"),
    (AGENT + '[exec.x]\nprogram = "ls"\n', "s.toml:8: exec.x.program must begin with '/'"),
    (AGENT + '[exec.x]\nprogram = "/none"\n', "s.toml:8: exec.x.program names /none, which cannot be executed"),
    (AGENT + '[exec.x]\nprogram = "/bin/ls"\narg_patterns = ["("]\n', "s.toml:9: exec.x.arg_patterns has"),
    (AGENT + "[language_worker]\nports = [80, 0]\n", "s.toml:8: language_worker.ports must be a list of whole numbers from 1 to 65535"),
    (AGENT + '[language_worker]\nports = ["80-79"]\n', "s.toml:8: language_worker.ports must be a list of whole numbers"),
    (AGENT + '[language_worker]\nports = ["1-40000", "30000-65535"]\n', "s.toml:8: language_worker.ports names more ports than there are; write each one once"),
    (AGENT + "[language_worker]\nports = 80\n", "s.toml:8: language_worker.ports must be a list of whole numbers"),
    #= LIM-10
    (AGENT + "[exec]\n" + "".join(f'[exec.{"n" * 60}{i}]\nprogram = "/bin/ls"\n' for i in range(200)), "s.toml:7: exec has more rules than"),
    (AGENT + '[metrics]\nlisten = "x"\n', "s.toml:8: metrics.listen must be a numeric address and a port"),
    (AGENT + '[tls]\ncertificate = "admin-token"\nkey = "admin-token"\n', "s.toml:8: tls.certificate is wrong: admin-token holds no readable certificate"),
]
CREDENTIALS_MISTAKES = [
    ('[[token]]\ntenant = "a"\nsha256 = "zz"\n', "credentials.toml:3: token.sha256 must be 64 lower-case hex digits"),
    ('[[token]]\nsha256 = "' + "0" * 64 + '"\n', "credentials.toml:1: token.tenant is missing"),
    ("[[token]\n", "credentials.toml:1: is not TOML"),
    ('[[certificate]]\ntenant = "a"\n', "credentials.toml:1: certificate needs either fingerprint"),
    ('[tenant.a]\ncertificate_required = "yes"\n', "credentials.toml:2: tenant.a.certificate_required must be true or false"),
    ("[tokens]\n", "credentials.toml:1: tokens is not a known setting"),
]


def write(fleet, name, text):
    with open(fleet.path(name), "w", encoding="utf-8") as file:
        file.write(text)


def run(fleet, program, *arguments):
    return subprocess.run([fleet.program(program), *arguments], capture_output=True, text=True, check=False, timeout=20, cwd=fleet.path())


def check_sentence(done, wanted):
    lines = done.stderr.splitlines()
    assert done.returncode == 2, (wanted, done)
    assert len(lines) == 1 and wanted in lines[0], (wanted, lines)
    assert not lines[0].endswith(".."), lines


def every_mistake_has_its_sentence(programs):
    with Fleet(programs, tls=False) as fleet:
        write(fleet, "text.db", "not a database" * 100)
        with sqlite3.connect(fleet.path("foreign.db")) as database:
            database.execute("create table t (x)")
        for settings, wanted in SCHEDULER_MISTAKES:
            write(fleet, "s.toml", settings)
            check_sentence(run(fleet, "windlass-scheduler", "--config", "s.toml", "--check-config"), wanted)
            check_sentence(run(fleet, "windlass-scheduler", "--config", "s.toml"), wanted)
        for settings, wanted in AGENT_MISTAKES:
            write(fleet, "s.toml", settings)
            check_sentence(run(fleet, "windlass-agent", "--config", "s.toml", "--check-config"), wanted)
            check_sentence(run(fleet, "windlass-agent", "--config", "s.toml"), wanted)
        write(fleet, "s.toml", GOOD)
        for text, wanted in CREDENTIALS_MISTAKES:
            write(fleet, "credentials.toml", text)
            check_sentence(run(fleet, "windlass-scheduler", "--config", "s.toml", "--check-config"), wanted)
        check_sentence(run(fleet, "windlass-scheduler", "--config", "none.toml"), "none.toml: cannot be read")
        check_sentence(run(fleet, "windlass-scheduler", "--bogus"), "--bogus; see --help")
        check_sentence(run(fleet, "windlass-scheduler", "--loops"), "--loops needs a value; see --help")
        check_sentence(run(fleet, "windlass", "bogus"), "there is no command 'bogus'; see windlass --help")
        check_sentence(run(fleet, "windlass", "drain", "acme"), "write TENANT/ID, as in acme/worker-1")
        assert not os.path.exists(fleet.path("var")), "a check makes nothing"


def a_damaged_file_is_left_as_it_is(programs):
    with Fleet(programs, tls=False) as fleet:
        fleet.start()
        fleet.json("POST", "/v1/workers/acme/i-1/revoke")
        fleet.scheduler.process.kill()
        fleet.scheduler.wait()
        path = fleet.path("scheduler.db")
        with sqlite3.connect(path) as database:  # everything into the one file
            database.execute("pragma wal_checkpoint(truncate)")
            database.execute("pragma journal_mode = delete")
        with open(path, "r+b") as file:
            size = file.seek(0, 2)
            for page in range(4096, size, 4096):  # the head of every page but the first
                file.seek(page)
                file.write(b"\xa5" * 64)
        for name in ("scheduler.db-wal", "scheduler.db-shm"):
            if os.path.exists(fleet.path(name)):
                os.remove(fleet.path(name))

        def digest():
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()

        before, names = digest(), sorted(os.listdir(fleet.path()))
        done = run(fleet, "windlass-scheduler", "--config", "scheduler.toml")
        check_sentence(done, "scheduler.db is damaged")
        assert "left as it is" in done.stderr, done.stderr
        assert digest() == before and sorted(os.listdir(fleet.path())) == names


def parse_function(text):
    """Of a function: its name and its parameter if that is a section, its own sections, the keys asked of each variable, its calls."""
    head = re.search(r"(?m)^[\w:<>&]+ (\w+)\((?:[^()]*, )?ConfigTable& (\w+)", text)
    name, parameter = head.groups() if head else ("", "")
    opened = r'ConfigTable&? (\w+) (?:= reader\.section|: reader\.named_tables)\("(\w+)"\)'
    asked = r'(\w+)\.(?:\w*text|choice|\w*integer|\w*number|boolean|duration|bytes|list|ranges|secret)\(\s*"(\w+)"|listen_address\((\w+), "(\w+)"'
    keys = {}
    for variable, key, listening, listen_key in re.findall(asked, text):
        keys.setdefault(variable or listening, set()).add(key or listen_key)
    for variable in re.findall(r"read_access\((\w+)\)", text):  # protocol/shell/access_tokens.h
        keys.setdefault(variable, set()).update(("token", "token_file", "tokens_file"))
    calls = [(function, passed) for function, words in re.findall(r"(\w+)\(([\w, .]*)", text) for passed in words.split(", ")]
    return name, parameter, dict(re.findall(opened, text)), keys, calls


def settings_in(source):
    """section.key of everything that the program asks for."""
    with open(os.path.join(ROOT, source), encoding="utf-8") as file:
        text = file.read()
    functions = [parse_function(each) for each in re.split(r"(?m)^}", text)]
    given = {name: keys[parameter] for name, parameter, _, keys, _ in functions if name and parameter in keys}
    found = set()
    for _, _, sections, keys, calls in functions:
        for variable, section in sections.items():
            found |= {f"{section}.{key}" for key in keys.get(variable, set())}
            for function, passed in calls:
                if passed == variable:
                    found |= {f"{section}.{key}" for key in given.get(function, set())}
    return found


def settings_of(example):
    with open(os.path.join(ROOT, example), encoding="utf-8") as file:
        found, section = set(), ""
        for line in file:
            if match := re.match(r"(?:# )?\[([\w.]+)\]", line):
                section = match[1]
            elif match := re.match(r"(?:# )?(\w+) = ", line):
                found.add(f"{section}.{match[1]}")
        return found


def the_examples_have_every_setting(programs):
    with Fleet(programs, tls=False) as fleet:
        agent = ("worker-agent/shell/config.cc", "worker-agent/shell/config_worker.cc")
        for sources, example, program in ((("scheduler/shell/config.cc",), "docs/examples/scheduler.toml", "windlass-scheduler"),
                                          (agent, "docs/examples/agent.toml", "windlass-agent")):
            wanted = set().union(*(settings_in(source) for source in sources))
            listed = {name.replace("tenants.acme.", "tenants.").replace("exec.backup.", "exec.") for name in settings_of(example)}
            assert len(wanted) > 15 and wanted == listed, (example, wanted ^ listed)
            with open(os.path.join(ROOT, example), encoding="utf-8") as file:
                text = file.read().replace("/etc/windlass/agent-token", "admin-token").replace("/etc/windlass/", "")
            write(fleet, "e.toml", text)
            done = run(fleet, program, "--config", "e.toml", "--check-config")
            assert done.returncode == 0, done
            # The defaults that stand behind a # are good ones, too.
            certificate = r"# (certificate|key|client_authority|authority) = .*\n"
            write(fleet, "e.toml", re.sub(r"(?m)^# (\w+ = )", r"\1", re.sub(certificate, "", text).split("# [exec.backup]")[0])
                  .replace('token = ""', "").replace('watcher = "/usr/local/bin/windlass-run"', ""))
            done = run(fleet, program, "--config", "e.toml", "--check-config")
            assert done.returncode == 0, done


def the_operating_page_shows_good_settings(programs):
    with open(os.path.join(ROOT, "docs", "operating.md"), encoding="utf-8") as page:
        blocks = re.findall(r"```toml\n(.*?)```", page.read(), re.DOTALL)
    with Fleet(programs) as fleet:
        os.makedirs(fleet.path("etc/tls"))
        for name in ("scheduler", "admin"):
            for source, target in zip(fleet.certificate("scheduler"), ("pem", "key")):
                os.link(source, fleet.path("etc", "tls", f"{name}.{target}"))
        os.link(fleet.path("tls", "ca.pem"), fleet.path("etc", "tls", "ca.pem"))
        for name in ("agent-token", "admin-token"):
            write(fleet, f"etc/{name}", "a-secret-of-this-test")
        checked = set()
        for block in blocks:
            if "[[certificate]]" in block or "[tenant." in block:
                write(fleet, "etc/credentials.toml", block)
                checked.add("credentials")
        for block in blocks:
            text = block.replace("/etc/windlass", fleet.path("etc")).replace("/var/lib", fleet.path("var"))
            if "[admin]" in text or "[server]" in text or "[tenants." in text:
                kind, program = "scheduler", "windlass-scheduler"
                if "credentials_file" not in text:  # a part of a whole
                    text += "" if "[admin]" in text else "[admin]\n"
                    text += f'token_file = "{fleet.path("etc", "admin-token")}"\n[session]\ncredentials_file = "{fleet.path("etc", "credentials.toml")}"\n'
            else:
                continue
            write(fleet, "p.toml", text)
            done = run(fleet, program, "--config", "p.toml", "--check-config")
            assert done.returncode == 0, (block, done)
            checked.add(kind)
        assert checked == {"credentials", "scheduler"}, checked  # whole files: install_test.py


run_tests([the_operating_page_shows_good_settings, every_mistake_has_its_sentence, a_damaged_file_is_left_as_it_is, the_examples_have_every_setting], sys.argv[1:])
