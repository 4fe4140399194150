#!/usr/bin/env python3
"""./dev answers misuse with one sentence and exit 2, explains each command, and never needs to build anything to do so."""

import json
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = "setup build test up sim fuzz bench conformance check lint format".split()


def dev(*arguments):
    return subprocess.run([ROOT / "dev", *arguments], capture_output=True, text=True, cwd="/", timeout=60,
                          env={**os.environ, "WINDLASS_SKIP_SETUP": "1"})


class Dev(unittest.TestCase):
    def test_misuse_is_one_sentence_and_exit_2(self):
        for arguments in (["nope"], ["--nope"], ["help", "nope"], ["build", "nope"], ["fuzz", "--seconds"], ["fuzz", "--seconds", "1x"],
                          ["fuzz", "--nope"], ["bench", "nope"], ["lint", "--nope"], ["check", "x"], ["up", "x"], ["setup", "x"],
                          ["format", "x"], ["sim"]):
            with self.subTest(arguments=arguments):
                run = dev(*arguments)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assertEqual(run.stdout, "")
                self.assertRegex(run.stderr, r"^dev: [^\n]+\n$")

    def test_every_command_is_listed_and_explained(self):
        listing = dev("help").stdout
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertRegex(listing, rf"(?m)^  {command} ")
                run = dev(command, "--help")
                self.assertEqual(run.returncode, 0)
                self.assertTrue(run.stdout.startswith(f"./dev {command}"), run.stdout)
                self.assertEqual(run.stdout, dev("help", command).stdout)

    def test_what_is_not_built_yet_says_so(self):
        self.assertEqual(dev("up").returncode, 0)
        self.assertIn("nothing to start yet", dev("up").stdout)
        self.assertEqual(dev("conformance").returncode, 2)

    def test_the_two_package_lists_name_the_same_libraries(self):
        ours = re.search(r"readonly packages=\((.*?)\n\)", (ROOT / "dev").read_text(), re.DOTALL).group(1).split()
        theirs = json.loads((ROOT / "vcpkg.json").read_text())["dependencies"]
        names = {"benchmark": "libbenchmark-dev", "boost-asio": "libboost1.81-dev", "boost-beast": "libboost1.81-dev",
                 "cli11": "libcli11-dev", "fmt": "libfmt-dev", "grpc": "libgrpc++-dev", "gtest": "libgtest-dev",
                 "openssl": "libssl-dev", "prometheus-cpp": "prometheus-cpp-dev", "protobuf": "libprotobuf-dev",
                 "rapidjson": "rapidjson-dev", "simdjson": "libsimdjson-dev", "spdlog": "libspdlog-dev",
                 "sqlite3": "libsqlite3-dev", "tomlplusplus": "libtomlplusplus-dev", "valijson": "libvalijson-dev"}
        self.assertEqual(sorted(theirs), sorted(names))
        libraries = {name for name in ours if name.endswith("-dev")} - {"libclang-rt-14-dev", "libgmock-dev"}
        self.assertEqual(libraries, set(names.values()))


if __name__ == "__main__":
    unittest.main()
