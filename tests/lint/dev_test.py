#!/usr/bin/env python3
"""./dev answers misuse with one sentence and exit 2, explains each command, and never needs to build anything to do so."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = "setup build test up sim fuzz bench conformance check lint format".split()


def dev(*arguments, **environment):
    return subprocess.run([ROOT / "dev", *arguments], capture_output=True, text=True, cwd="/", timeout=60,
                          env={**os.environ, "WINDLASS_SKIP_SETUP": "1", **environment})


def boost_ports(root):
    """vcpkg has one port for each library of Boost: those that sources include."""
    included = (re.findall(r"^\s*#\s*include\s*<boost/([a-z0-9_]+)", tree.read(root, name), re.MULTILINE) for name in tree.files(root, ".cc", ".h"))
    return {f"boost-{name.replace('_', '-')}" for names in included for name in names}


class Dev(unittest.TestCase):
    def test_misuse_is_one_sentence_and_exit_2(self):
        for arguments in (["nope"], ["--nope"], ["help", "nope"], ["build", "nope"], ["fuzz", "--seconds"], ["fuzz", "--seconds", "1x"],
                          ["fuzz", "--nope"], ["bench", "nope"], ["lint", "--nope"], ["check", "x"], ["up", "x"], ["setup", "x"],
                          ["format", "x"], ["sim"], ["sim", "runtime"]):
            with self.subTest(arguments=arguments):
                run = dev(*arguments)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assertEqual(run.stdout, "")
                self.assertRegex(run.stderr, r"^dev: [^\n]+\n$")

    def test_jobs_that_are_no_number_are_misuse(self):
        for jobs in ("abc", "0", "-1", "1.5", "2 3"):
            with self.subTest(jobs=jobs):
                run = dev("help", WINDLASS_JOBS=jobs)
                self.assertEqual(run.returncode, 2, run.stderr)
                self.assertRegex(run.stderr, rf"^dev: WINDLASS_JOBS is '{re.escape(jobs)}'[^\n]+\n$")
        self.assertEqual(dev("help", WINDLASS_JOBS="08").returncode, 0)

    def test_every_command_is_listed_and_explained(self):
        listing = dev("help").stdout
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertRegex(listing, rf"(?m)^  {command} ")
                run = dev(command, "--help")
                self.assertEqual(run.returncode, 0)
                self.assertTrue(run.stdout.startswith(f"./dev {command}"), run.stdout)
                self.assertEqual(run.stdout, dev("help", command).stdout)

    def test_the_two_package_lists_name_the_same_libraries(self):
        ours = re.search(r"readonly build_packages=\((.*?)\n\)", (ROOT / "dev").read_text(), re.DOTALL).group(1).split()
        theirs = json.loads((ROOT / "vcpkg.json").read_text())["dependencies"]
        names = {"benchmark": "libbenchmark-dev", "cli11": "libcli11-dev", "fmt": "libfmt-dev", "grpc": "libgrpc++-dev", "gtest": "libgtest-dev",
                 "libarchive": "libarchive-dev", "libwebsockets": "libwebsockets-dev",
                 "openssl": "libssl-dev", "prometheus-cpp": "prometheus-cpp-dev", "protobuf": "libprotobuf-dev",
                 "rapidjson": "rapidjson-dev", "re2": "libre2-dev", "simdjson": "libsimdjson-dev", "spdlog": "libspdlog-dev",
                 "sqlite3": "libsqlite3-dev", "tomlplusplus": "libtomlplusplus-dev", "valijson": "libvalijson-dev"}
        names |= {port: "libboost1.81-dev" for port in boost_ports(ROOT)}
        self.assertEqual(sorted(theirs), sorted(names))
        libraries = {name for name in ours if name.endswith("-dev")} - {"libclang-rt-14-dev", "libgmock-dev"}
        self.assertEqual(libraries, set(names.values()))

    def test_each_library_of_boost_that_a_source_includes_is_a_port(self):
        with tempfile.TemporaryDirectory() as root:
            pathlib.Path(root, "a.cc").write_text("#include <boost/json.hpp>\n#include <boost/asio/buffer.hpp>\n# include <boost/smart_ptr/a.hpp>\n")
            self.assertEqual(boost_ports(root), {"boost-json", "boost-asio", "boost-smart-ptr"})


class Fuzz(unittest.TestCase):
    """./dev fuzz in a tree of its own, with a build that does nothing and fuzzers that are scripts."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copy(ROOT / "dev", self.root / "dev")
        (self.root / "tests/fuzz").mkdir(parents=True)
        shutil.copy(ROOT / "tests/fuzz/run_fuzzers.sh", self.root / "tests/fuzz")
        self.script("bin/cmake", "exit 0")
        self.script("build/fuzz/build.ninja", "")

    def script(self, name, body):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def fuzzer(self, name, body, corpus=True):
        self.script(f"tests/fuzz/fuzz_{name}.cc", "")
        if corpus:
            self.script(f"tests/fuzz/corpus/{name}/one", "")
        self.script(f"build/fuzz/tests/fuzz/fuzz_{name}", body)

    def run_dev(self, *arguments):
        return subprocess.run([self.root / "dev", "fuzz", *arguments], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "WINDLASS_SKIP_SETUP": "1", "PATH": f"{self.root}/bin:{os.environ['PATH']}"})

    def test_clean_fuzzer_gets_its_corpus_and_time(self):
        self.fuzzer("calm", 'test -f build/fuzz/scratch/fuzz_calm/corpus/one && echo "$1" >build/arguments')
        run = self.run_dev("--seconds", "7")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("fuzz fuzz_calm clean", run.stdout)
        self.assertEqual((self.root / "build/arguments").read_text(), "-max_total_time=7\n")

    def test_crash_is_exit_1_and_names_the_reproducer_while_others_still_run(self):
        self.fuzzer("angry", 'echo "Test unit written to build/fuzz/artifacts/fuzz_angry-crash-1" >&2; exit 77')
        self.fuzzer("calm", "exit 0")
        run = self.run_dev("--seconds", "1")
        self.assertEqual(run.returncode, 1)
        self.assertIn("fuzz fuzz_calm clean", run.stdout)
        self.assertIn("fuzz_angry FAILED (exit 77), reproduce with: build/fuzz/tests/fuzz/fuzz_angry "
                      "build/fuzz/artifacts/fuzz_angry-crash-1", run.stdout)

    def test_a_fuzzer_without_a_committed_corpus_is_a_failure(self):
        self.fuzzer("bare", "exit 0", corpus=False)
        run = self.run_dev("--smoke")
        self.assertEqual(run.returncode, 1)
        self.assertIn("tests/fuzz/corpus/bare", run.stdout)


if __name__ == "__main__":
    unittest.main()
