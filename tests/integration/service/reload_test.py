"""Tokens, keys and certificates that change while sessions are up: read again without a signal, and no session drops.

  reload_test.py BUILD_FOLDER [test...]
"""
import os
import signal
import sys
import time

from fleet_processes import Fleet, run_tests, wait_until, write_atomically


def session_of(fleet, name):
    worker = fleet.ready(name)
    detail = fleet.json("GET", f"/v1/workers/{worker['tenant']}/{worker['id']}")
    return detail["session"]["id"] if isinstance(detail.get("session"), dict) else detail["session_id"]


def tokens_come_and_go(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("old")
        fleet.credentials()
        fleet.start()
        fleet.agent("old")
        first = session_of(fleet, "old")

        fleet.new_token("new")
        fleet.credentials()
        fleet.scheduler.wait_for("files were read again", what="credentials")
        fleet.agent("new")
        fleet.ready("new")

        fleet.credentials(names=["new"])
        wait_until("the second reading", lambda: len(fleet.scheduler.said("files were read again", what="credentials")) == 2)
        late = fleet.agent("late", token="old")
        assert "E.AUTH.INVALID_TOKEN" in late.wait_for("not connected")["reason"]
        assert fleet.worker("late") is None
        # Who had been let in stays.
        assert session_of(fleet, "old") == first
        assert fleet.run_command("old")["state"] == "done"
        assert not fleet.agents["old"].said("the connection is gone; the session waits for a resume")


def a_bad_file_changes_nothing(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        fleet.agent("a")
        fleet.ready("a")
        # In place and half-written: the editor has not finished.
        with open(fleet.path("credentials.toml"), "w", encoding="utf-8") as file:
            file.write('[[token]]\ntenant = "ac')
        line = fleet.scheduler.wait_for("files cannot be read again; what was in force stays", what="credentials")
        assert fleet.path("credentials.toml") in line["reason"] and line["level"] == "error", line
        fleet.agent("b", token="a")
        fleet.ready("b")
        # A key that is not the certificate's.
        other = fleet.certificate("other")
        served = fleet.served_certificate()
        with open(other[1], encoding="utf-8") as file:
            write_atomically(fleet.path("tls", "scheduler.key"), file.read())
        line = fleet.scheduler.wait_for("files cannot be read again; what was in force stays", what="certificates")
        assert "does not belong to the certificate" in line["reason"], line
        assert fleet.served_certificate() == served
        # A signing key that is none.
        with open(fleet.path("scheduler.db.keys"), "a", encoding="utf-8") as file:
            file.write("nonsense\n")
        fleet.scheduler.wait_for("files cannot be read again; what was in force stays", what="signing keys")
        assert fleet.run_command("a")["state"] == "done"


def a_new_certificate_is_served(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start()
        fleet.agent("a")
        session, served = session_of(fleet, "a"), fleet.served_certificate()
        pem, key = fleet.certificate("next")
        os.rename(pem, fleet.path("tls", "scheduler.pem"))
        os.rename(key, fleet.path("tls", "scheduler.key"))
        fresh = wait_until("another certificate", lambda: (c := fleet.served_certificate()) != served and c)
        with open(fleet.path("tls", "scheduler.pem"), encoding="utf-8") as file:
            assert file.read().startswith(fresh.strip()[:200])
        assert session_of(fleet, "a") == session
        fleet.agent("b", token="a")  # dials after the change
        fleet.ready("b")


def keys_and_the_admin_token_rotate(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        fleet.start(session_settings='resume_window = "2h"')
        fleet.agent("a")
        session = session_of(fleet, "a")
        with open(fleet.path("scheduler.db.keys"), encoding="utf-8") as file:
            old = file.read()
        write_atomically(fleet.path("scheduler.db.keys"), "k-new " + "A" * 43 + "\n" + old)
        fleet.scheduler.wait_for("files were read again", what="signing keys")
        assert session_of(fleet, "a") == session
        # Half an hour, six heartbeats and the resume window: until then the old key is needed.
        advice = fleet.scheduler.wait_for("session tokens of older signing keys are good for a while; keep those keys for so long")
        assert 9_170 <= advice["old_keys_needed_for_s"] <= 9_180, advice

        before, fleet.admin_token = fleet.admin_token, "another-admin-token-of-this-test"
        write_atomically(fleet.path("admin-token"), fleet.admin_token)
        fleet.scheduler.wait_for("files were read again", what="admin tokens")
        assert fleet.ask("GET", "/v1/workers", token=before)[0] == 401
        assert fleet.ask("GET", "/v1/workers")[0] == 200


def an_agent_takes_its_new_token(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.new_token("b")
        fleet.credentials()
        fleet.start()
        agent = fleet.agent("a")
        fleet.ready("a")
        write_atomically(fleet.path("a", "token"), fleet.tokens["b"])
        agent.wait_for("files were read again", what="token")
        fleet.credentials(names=["b"])
        fleet.scheduler.wait_for("files were read again", what="credentials")
        worker = fleet.worker("a")
        fleet.json("POST", f"/v1/workers/acme/{worker['id']}/reset", {"reason": "test"})
        wait_until("a second session", lambda: len(agent.said("the session is established", resumed=False)) == 2)


def a_signal_reads_everything(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        fleet.credentials()
        scheduler = fleet.start(drain_window="60s")
        agent = fleet.agent("a")
        session = session_of(fleet, "a")
        assert not scheduler.said("files were read again"), "a start is no change"
        scheduler.signal(signal.SIGHUP)
        for what in ("credentials", "signing keys", "certificates", "admin tokens"):
            scheduler.wait_for("files were read again", what=what)
        agent.signal(signal.SIGHUP)
        for what in ("token", "certificates"):
            agent.wait_for("files were read again", what=what)
        assert session_of(fleet, "a") == session
        # The first SIGTERM drains, here for long; the second stops at once.
        begun = time.monotonic()
        scheduler.signal(signal.SIGTERM)
        scheduler.wait_for("draining; a second signal stops at once")
        scheduler.signal(signal.SIGTERM)
        assert scheduler.wait(10) == 0 and time.monotonic() - begun < 10


run_tests([a_signal_reads_everything, tokens_come_and_go, a_bad_file_changes_nothing, a_new_certificate_is_served, keys_and_the_admin_token_rotate,
           an_agent_takes_its_new_token], sys.argv[1:])
