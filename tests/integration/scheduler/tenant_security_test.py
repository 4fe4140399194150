"""Limits per tenant on a real scheduler with two loops: each bound, threshold and mode holds for its tenant and touches no other one."""
import json

from revision2_worker import Reset
from security_case import SecurityCase, main, wait_until

TERMS = """
[tenants.few]
sessions_max = 4
[tenants.waiting]
pending_handshakes_max = 3
[tenants.slow]
frames_per_second_max = 2
[tenants.tight]
mem_pct_max = 50
disk_pct_max = 60.5
[tenants.roomy]
mem_pct_max = 100
[tenants.warned]
schema_mode = "warn"
[tenants.counted]
schema_mode = "count"
"""
TENANTS = ("few", "waiting", "slow", "tight", "roomy", "warned", "counted", "later")


class PerTenant(SecurityCase):
    """acme has no table of its own: it is the neighbour that no bound of another may touch."""

    @classmethod
    def options(cls):
        cls.tokens, entries = {}, ""
        for tenant in TENANTS:
            cls.tokens[tenant], entry = cls.new_token(tenant)
            entries += entry
        return {"server": "loops = 2", "entries": entries, "settings": TERMS}

    def of(self, tenant, instance):
        return self.worker(instance, tenant=tenant, token=self.tokens.get(tenant, self.scheduler.token))

    def ready(self, tenant, instance):
        worker = self.of(tenant, instance).start()
        self.secrets.append(worker.session_token)
        return worker

    def assert_neighbour_works(self):
        name = self.id().rsplit(".", maxsplit=1)[-1]
        self.assert_works(self.ready("acme", f"i-{name}"), name)

    def lines(self, event, **facts):
        found = [json.loads(line) for line in self.scheduler.log_text().splitlines()]
        return [line for line in found if line["event"] == event and all(line.get(key) == value for key, value in facts.items())]

    # ---- bounds

    def test_sessions(self):
        workers = [self.ready("few", f"i-{i}") for i in range(4)]
        refused = self.assert_refused("E.LIMIT.CAPACITY", self.of("few", "i-4").start)
        self.assertGreater(refused.retry_after_ms, 0)
        self.assertIn("tenant", refused.reason)
        self.assert_neighbour_works()
        self.assert_works(workers[0], "few-0")
        # A full tenant's own workers come back, by resume and anew.
        workers[1].connect().handshake()
        workers[1].resume()
        self.assert_works(workers[1], "few-1")
        workers[2].start()
        self.assert_works(workers[2], "few-2")
        self.scheduler.post("/v1/workers/few/i-3/revoke", {})
        wait_until(lambda: self.scheduler.metric('windlass_session_ends_total{code="E.AUTH.INVALID_TOKEN"}') == 1, "one session less")
        self.assert_works(self.ready("few", "i-4"), "few-4")

    def test_waiting_handshakes(self):
        waiting = []
        for i in range(3):
            waiting.append(self.of("waiting", f"i-{i}").connect())
            waiting[-1].handshake()
        late = self.of("waiting", "i-3").connect()
        refused = self.assert_refused("E.LIMIT.CAPACITY", late.handshake)
        self.assertGreater(refused.retry_after_ms, 0)
        self.assert_neighbour_works()
        # A stranger that names the tenant is refused for what it is.
        stranger = self.worker("i-9", tenant="waiting", token="guessed").connect()
        self.assert_refused("E.AUTH.INVALID_TOKEN", stranger.handshake)
        waiting[0].register()
        late.connect().handshake()
        late.register()
        self.assert_works(late, "waiting-3")

    def test_frame_rate(self):
        ended = 'windlass_session_ends_total{code="E.LIMIT.RATE"}'
        workers = [self.ready("slow", f"i-{i}") for i in range(4)]
        for _ in range(18):  # none of them sends 20, which is a burst
            for worker in workers:
                try:
                    worker.write(worker.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}))
                except OSError:
                    pass  # it was reset
        wait_until(lambda: self.scheduler.metric(ended) >= 1, "one of them is reset")
        codes = set()
        for worker in workers:
            try:
                worker.ask(worker.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}))
            except Reset as reset:
                codes.add(reset.code)
            except OSError:
                pass
        self.assertLessEqual(codes, {"E.LIMIT.RATE"})
        before = self.scheduler.metric(ended)
        neighbour = self.ready("acme", "i-fast")
        for _ in range(200):
            neighbour.write(neighbour.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0}}))
        self.assert_works(neighbour, "fast")
        self.assertEqual(self.scheduler.metric(ended), before)

    # ---- thresholds

    def is_short(self, tenant, instance, **load):
        """Whether the scheduler gives no new work to a worker that reports this load."""
        worker = self.ready(tenant, instance)
        worker.ask(worker.frame("control.heartbeat", {"healthy": True, "metrics": {"inflight": 0, **load}}))
        path = f"/v1/workers/{tenant}/{instance}"
        wait_until(lambda: "load" in self.scheduler.get(path), "the load is seen")
        return self.scheduler.get(path)["placement"].startswith("short of")

    def test_thresholds(self):
        self.assertTrue(self.is_short("tight", "i-1", mem_pct=50))
        self.assertTrue(self.is_short("tight", "i-2", disk_pct=61))
        self.assertFalse(self.is_short("tight", "i-3", mem_pct=49, disk_pct=60))
        self.assertFalse(self.is_short("roomy", "i-1", mem_pct=95))
        self.assertTrue(self.is_short("roomy", "i-2", mem_pct=95, disk_pct=95), "what its table leaves open")
        self.assertFalse(self.is_short("acme", "i-1", mem_pct=89))
        self.assertTrue(self.is_short("acme", "i-2", mem_pct=95))

    # ---- modes

    def violate(self, worker):
        frame = worker.frame("control.heartbeat", {"healthy": "very", "metrics": {"inflight": 0}})
        answer = worker.ask(frame)
        self.assertFalse(answer["ok"])
        self.assertTrue(answer["info"].startswith("E.PROTO.SCHEMA /payload/healthy"), answer)

    def violate_often(self, tenant):
        """40 of them, and the session still works; how many the metric counted."""
        counted = 'windlass_schema_violations_total{code="E.PROTO.SCHEMA"}'
        before = self.scheduler.metric(counted)
        worker = self.ready(tenant, "i-1")
        for _ in range(40):
            self.violate(worker)
        self.assert_works(worker, f"{tenant}-afterwards")
        return self.scheduler.metric(counted) - before

    def test_strict_ends_a_session_without_budget(self):
        worker = self.ready("acme", "i-strict")
        for _ in range(16):
            self.violate(worker)
        with self.assertRaises(Reset) as caught:
            self.violate(worker)
        self.assertEqual(caught.exception.code, "E.LIMIT.ERRORS")

    def test_warn_refuses_counts_and_logs(self):
        self.assertEqual(self.violate_often("warned"), 40)
        self.assertTrue(self.lines("a frame was refused", tenant="warned", code="E.PROTO.SCHEMA"))

    def test_count_refuses_and_counts(self):
        self.assertEqual(self.violate_often("counted"), 40)
        self.assertFalse(self.lines("a frame was refused", tenant="counted"))

    def test_every_mode_is_strict_before_the_accept(self):
        worker = self.of("counted", "i-early").connect()
        worker.handshake()
        self.assert_refused("E.PROTO.SCHEMA", lambda: worker.ask(worker.frame("control.register", {"capabilities": 7})))

    # ---- changed while it runs

    def change(self, terms):
        with open(self.scheduler.path("scheduler.toml"), encoding="utf-8") as file:
            text = file.read()
        start = text.index("[tenants.few]")
        self.scheduler.write("scheduler.toml", text[:start] + terms + text[text.index("[log]", start):])

    def test_terms_are_read_again(self):
        first = self.ready("later", "i-0")
        self.addCleanup(self.change, TERMS)
        self.change(TERMS + "[tenants.later]\nsessions_max = 1\nschema_mode = \"count\"\n")
        wait_until(lambda: self.lines("files were read again", what="tenants"), "the new terms are read")
        self.assert_refused("E.LIMIT.CAPACITY", self.of("later", "i-1").start)
        for _ in range(20):
            self.violate(first)  # a session from before has them too
        self.change(TERMS + "[tenants.later]\nsessions = 2\n")
        failed = "files cannot be read again; what was in force stays"
        wait_until(lambda: self.lines(failed, what="tenants"), "the mistake is told")
        self.assertIn("tenants.later.sessions is not a known setting; remove it or correct its name", self.lines(failed)[0]["reason"])
        self.assert_refused("E.LIMIT.CAPACITY", self.of("later", "i-1").start)
        self.change(TERMS)
        wait_until(lambda: len(self.lines("files were read again", what="tenants")) == 2, "no terms any more")
        self.assert_works(self.ready("later", "i-1"), "later-1")
        self.assert_works(first, "later-0")


if __name__ == "__main__":
    main()
