"""Client certificates from end to end: bound to a tenant and a worker, demanded where the tenant says so, replaced while sessions
are up.

  mtls_test.py BUILD_FOLDER [test...]
"""
import hashlib
import os
import ssl
import sys

from fleet_processes import Fleet, run_tests, wait_until, write_atomically


def fingerprint(pem):
    with open(pem, encoding="utf-8") as file:
        text = file.read()
    leaf = text[:text.index("-----END CERTIFICATE-----")] + "-----END CERTIFICATE-----\n"
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(leaf)).hexdigest()


def start(fleet, policy="optional"):
    fleet.start(tls_settings=f'client_certificates = "{policy}"\nclient_authority = "{fleet.path("tls", "ca.pem")}"\n')


def agent(fleet, name, files=None, instance=None, token="", **more):
    if instance:
        os.makedirs(fleet.path(name, "var"), exist_ok=True)
        write_atomically(fleet.path(name, "var", "worker_instance_id"), instance + "\n")
    tls = f'certificate = "{files[0]}"\nkey = "{files[1]}"\n' if files else ""
    return fleet.agent(name, token=token, tls_settings=tls, **more)


def refused_with(process):
    return process.wait_for("not connected")["reason"].split()[0]


def bound(tenant, **fields):
    return f'\n[[certificate]]\ntenant = "{tenant}"\n' + "".join(f'{key} = "{value}"\n' for key, value in fields.items())


def a_certificate_speaks_for_its_worker_alone(programs):
    with Fleet(programs) as fleet:
        by_name = fleet.certificate("by-name", "DNS:worker-1.example")
        by_print = fleet.certificate("by-print", "DNS:whoever.example")
        unbound = fleet.certificate("unbound", "DNS:nobody.example")
        fleet.credentials(bound("acme", san="DNS:worker-1.example", instance="i-1") +
                          bound("acme", fingerprint=fingerprint(by_print[0])))
        start(fleet)
        agent(fleet, "named", by_name, "i-1")
        agent(fleet, "printed", by_print)
        fleet.ready("named")
        assert fleet.run_command("printed")["state"] == "done"
        assert refused_with(agent(fleet, "another-worker", by_name, "i-2")) == "E.SESSION.DENIED"
        assert refused_with(agent(fleet, "another-tenant", by_name, "i-1", tenant="umbrella")) == "E.SESSION.TENANT_MISMATCH"
        assert refused_with(agent(fleet, "unbound", unbound)) == "E.AUTH.UNAUTHENTICATED"
        # Who signed it is somebody else: TLS ends it before anything is said.
        fleet.certificate("foreign", "DNS:worker-1.example", folder="elsewhere")
        foreign = agent(fleet, "foreign", (fleet.path("elsewhere", "foreign.pem"), fleet.path("elsewhere", "foreign.key")), "i-1")
        foreign.wait_for("not connected")
        assert {w["id"] for w in fleet.json("GET", "/v1/workers")["workers"]} >= {"i-1"}
        assert not foreign.said("the session is established")


def a_tenant_demands_certificates(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        files = fleet.certificate("w", "DNS:w.example")
        fleet.credentials(bound("acme", san="DNS:w.example") + "\n[tenant.acme]\ncertificate_required = true\n")
        start(fleet)
        assert refused_with(agent(fleet, "token-only", token="a")) == "E.AUTH.MTLS_REQUIRED"
        agent(fleet, "both", files, token="a")
        agent(fleet, "certificate-only", files)
        fleet.ready("both")
        fleet.ready("certificate-only")
        line = fleet.scheduler.wait_for("a connection was refused", code="E.AUTH.MTLS_REQUIRED", tenant="acme")
        assert line["type"] == "control.handshake", line
        # The policy goes with the file.
        fleet.credentials(bound("acme", san="DNS:w.example"))
        fleet.scheduler.wait_for("files were read again", what="credentials")
        agent(fleet, "later", token="a")
        fleet.ready("later")


def a_listener_demands_certificates(programs):
    with Fleet(programs) as fleet:
        fleet.new_token("a")
        files = fleet.certificate("w", "DNS:w.example")
        fleet.credentials(bound("acme", san="DNS:w.example"))
        start(fleet, "required")
        without = agent(fleet, "without", token="a")
        without.wait_for("not connected")
        agent(fleet, "with", files)
        fleet.ready("with")
        assert not without.said("the session is established")


def a_worker_changes_its_certificate(programs):
    with Fleet(programs) as fleet:
        files = fleet.certificate("w", "DNS:w.example")
        old = fingerprint(files[0])
        fleet.credentials(bound("acme", fingerprint=old))
        start(fleet)
        process = agent(fleet, "w", files)
        worker = fleet.ready("w")
        following = fleet.certificate("next", "DNS:w.example")
        fleet.credentials(bound("acme", fingerprint=fingerprint(following[0])))
        fleet.scheduler.wait_for("files were read again", what="credentials")
        assert fleet.run_command("w")["state"] == "done", "the session outlives the entry that let it in"
        for source, target in zip(following, files):
            os.rename(source, target)
        process.wait_for("files were read again", what="certificates")
        fleet.json("POST", f"/v1/workers/acme/{worker['id']}/reset", {"reason": "come back"})
        wait_until("a second session", lambda: len(process.said("the session is established", resumed=False)) == 2)
        assert fleet.run_command("w")["state"] == "done"


run_tests([a_certificate_speaks_for_its_worker_alone, a_tenant_demands_certificates, a_listener_demands_certificates,
           a_worker_changes_its_certificate], sys.argv[1:])
