"""The service files: systemd can read them, and judges how much each lets its program do.

  units_test.py BUILD_FOLDER [test...]
"""
import os
import re
import shutil
import subprocess
import sys

from fleet_processes import run_tests

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
# What `systemd-analyze security` may say at most: 0 is locked in, 10 may do anything.
EXPOSURE_MAX = {"scheduler/packaging/windlass-scheduler.service": 3.0, "runtime/packaging/windlass-runtime.service": 3.0,
                "worker-agent/packaging/windlass-agent.service": 3.5}


def settings_of(unit):
    found = {}
    with open(os.path.join(ROOT, unit), encoding="utf-8") as file:
        for line in file:
            if match := re.fullmatch(r"(\w+)=(.*)\n", line):
                found.setdefault(match[1], []).append(match[2])
    return found


def each_program_has_a_unit_that_brings_it_back(_):
    for unit in EXPOSURE_MAX:
        settings = settings_of(unit)
        program = os.path.basename(unit).removesuffix(".service")
        assert settings["ExecStart"][0].startswith(f"/usr/local/bin/{program} --config /etc/windlass/"), (unit, settings)
        assert settings["ExecStartPre"] == [settings["ExecStart"][0] + " --check-config"], (unit, settings)
        # Each may end by itself with 0, when it is drained; only bad settings stay as they are.
        assert settings["Restart"] == ["always"] and settings["RestartPreventExitStatus"] == ["2"], (unit, settings)
        assert settings["UMask"] == ["0077"] and settings["NoNewPrivileges"] == ["yes"], (unit, settings)
        assert settings["User"][0] not in ("", "root"), (unit, settings)


def systemd_finds_each_well_protected(_):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        print("systemd-analyze is not here: nothing was judged", flush=True)
        return
    for unit, most in EXPOSURE_MAX.items():
        done = subprocess.run([analyze, "security", "--offline=true", "--no-pager", f"--threshold={round(most * 10)}", os.path.join(ROOT, unit)],
                              capture_output=True, text=True, check=False, timeout=60)
        level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert level, (unit, done.stdout[-400:], done.stderr)
        assert done.returncode == 0 and float(level[1]) <= most, f"{unit}: {level[0]}, at most {most} is wanted"
        print(f"{unit}: {level[1]}", flush=True)


run_tests([each_program_has_a_unit_that_brings_it_back, systemd_finds_each_well_protected], sys.argv[1:])
