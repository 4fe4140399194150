"""Whether the views tell the truth while it happens: the scheduler's REST, the command line, the runtime's status and health.

Somebody who has been gone for longer than NOTICE is nowhere said to be able to take work; who has been gone for `lost_after` and NOTICE more
is said to be lost. A lie is a Failure that names the view, the agent and for how long it had been gone.
"""
import json
import threading
import time

from function_world import APPLICATION
from world import Failure
from day_world import NOTICE

PACE = 0.3
SLACK = 2.0  # for a busy machine, beside what is promised


class Truth(threading.Thread):
    def __init__(self, world, lost_after):
        super().__init__(daemon=True)
        self.world, self.lost_after = world, lost_after
        self.stopping = threading.Event()
        self.problem = None
        self.looks = self.notices = self.losses = 0

    def run(self):
        try:
            turn = 0
            while not self.stopping.wait(PACE):
                turn += 1
                self.look_at_scheduler()
                self.look_at_runtime()
                if turn % 20 == 0:
                    self.look_at_command_line()
                self.looks += 1
        except Failure as problem:
            self.problem = problem
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = Failure(f"the watch over the views broke: {problem!r}")

    def check_well(self):
        if self.problem:
            raise self.problem

    def absent(self, asked_at, *lives):
        """Agents that had been gone for longer than NOTICE when it was asked, while those who tell about them were up."""
        if any(life.gone_since is not None or asked_at - life.touched < NOTICE + SLACK for life in lives):
            return {}
        return {agent: gone for agent in self.world.named() if (gone := self.world.lives[agent].gone_for(asked_at)) > NOTICE + SLACK}

    def lie(self, view, agent, gone, said):
        raise Failure(f"{view} says of {agent.name} ({agent.id}), which has been gone for {gone:.1f} s: {said}")

    def look_at_scheduler(self):
        asked_at = time.monotonic()
        workers, app = self.world.worker_list(), self.world.app()
        absent = self.absent(asked_at, self.world.scheduler_life)
        if workers is None or app is None or not absent:
            return
        by_id = {each["id"]: each for each in workers}
        assignments = {each["worker"]: each for each in app["assignments"]}
        for agent, gone in absent.items():
            said = by_id.get(agent.id)
            if said and said["state"] == "READY" and said["liveness"] == "HEALTHY":
                self.lie("/v1/workers", agent, gone, f"{said['state']} {said['liveness']}")
            self.notices += 1
            if gone > self.lost_after + NOTICE + SLACK:
                self.losses += 1
                if assignments.get(agent.id, {}).get("state") in ("ready", "pending"):
                    self.lie("/v1/apps", agent, gone, assignments[agent.id])
        able = self.world.workers_able(asked_at)
        if app["workers"]["ready"] > able:
            raise Failure(f"/v1/apps says that {app['workers']['ready']} workers of {APPLICATION} are ready, and at most {able} can be: {app}")

    def look_at_runtime(self):
        asked_at = time.monotonic()
        status, health = self.world.runtime_status(), self.world.runtime_health()
        absent = self.absent(asked_at, self.world.runtime_life)
        if status is None or health is None or not absent:
            return
        for agent, gone in absent.items():
            for worker in status["workers"]:
                if worker["worker"].startswith(agent.id + ".") and worker["state"] == "Ready" and not worker["detached"]:
                    self.lie("/status of the runtime", agent, gone, worker)
        able = self.world.workers_able(asked_at)
        if health["ready_workers"] > able:
            raise Failure(f"/health says that {health['ready_workers']} workers are ready, and at most {able} can be: {health}")

    def look_at_command_line(self):
        asked_at = time.monotonic()
        if self.world.scheduler_life.gone_since is not None:
            return
        try:
            listed = json.loads(self.world.windlass("--json", "workers"))["workers"]
        except Failure:
            return  # it may have been killed meanwhile
        by_id = {each["id"]: each for each in listed}
        for agent, gone in self.absent(asked_at, self.world.scheduler_life).items():
            said = by_id.get(agent.id)
            if said and said["state"] == "READY" and said["liveness"] == "HEALTHY":
                self.lie("`windlass workers`", agent, gone, f"{said['state']} {said['liveness']}")
