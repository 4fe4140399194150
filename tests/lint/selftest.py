#!/usr/bin/env python3
"""Proves that each check can fail: plants one violation in a small tree of its own and expects it to be named. A check that
cannot fail holds nothing."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import changed
import check_cases
import check_diagram
import check_errors
import check_format
import check_headers
import check_layers
import check_paths
import check_purity
import check_requirements
import check_size
import check_tidy
import tree

HERE = pathlib.Path(__file__).resolve().parent
LAYERS = """
protocol/base | | pure |
protocol/codec | protocol/base | pure | simdjson.h
protocol/shell | protocol/* | impure | boost/
tests | * | impure | *
"""


class Planted(unittest.TestCase):
    """A temporary tree, filled by plant() and removed afterwards."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def plant(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def assert_only(self, problems, *words):
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])


class Cases(Planted):
    def check(self, **changes):
        self.plant("docs/protocol.md", "- **HSK-1** One.\n- **HSK-2** Two.\n")
        self.plant("docs/conformance-cases.md", changes.get("page", "## Clauses that no case judges\n\n| clause | why |\n|---|---|\n| HSK-2 | so |\n"))
        self.plant("conformance/cases/handshake/" + changes.get("file", "first.json"), json.dumps({"id": changes.get("id", "HSK-1/first"), "role": "scheduler"}))
        return list(check_cases.problems(self.root))

    def test_clause_with_a_case_or_a_reason_passes(self):
        self.assertEqual(self.check(), [])

    def test_clause_without_either_is_named(self):
        self.assert_only(self.check(page="## Clauses that no case judges\n"), "HSK-2", "no case judges it")

    def test_excuse_for_what_is_judged_is_named(self):
        self.assert_only(self.check(page="## Clauses that no case judges\n| HSK-1, HSK-2 | so |\n"), "HSK-1", "but one does")

    def test_file_with_another_name_and_unknown_clause_are_named(self):
        self.assert_only(self.check(file="second.json"), "first.json")
        self.assertIn("no clause HSK-9", self.check(id="HSK-9/first")[0])

    def test_example_that_no_case_sends_is_named_for_each_role(self):
        self.plant("schema/examples/invalid/drain.extra.json", '{"schema": "drain"}')
        self.plant("schema/examples/invalid/register.extra.json", '{"schema": "register"}')
        self.assertEqual([problem.split(": ")[1] for problem in self.check()], ["no case sends it to a scheduler", "no case sends it to a worker",
                                                                              "no case sends it to a scheduler"])
        for role, prefix in (("scheduler", ""), ("worker", "worker-")):
            case = {"id": f"HSK-1/{role}", "role": role, "steps": [{"open": {}}, {"send_examples": ["drain.", "register.e"]}]}
            self.plant(f"conformance/cases/handshake/{prefix}{role}.json", json.dumps(case))
        self.assertEqual(self.check(), [])


class Layers(Planted):
    def check(self):
        return check_layers.check(self.root, check_layers.load_layers(self.plant("layers.txt", LAYERS)))

    def test_allowed_arrows_pass(self):
        self.plant("protocol/codec/a.cc", '#include "protocol/base/b.h"\n#include <simdjson.h>\n#include <vector>\n')
        self.plant("tests/unit/a_test.cc", '#include "protocol/codec/a.h"\n#include <gtest/gtest.h>\n')
        self.assertEqual(self.check(), [])

    def test_arrow_against_the_list_is_named_with_its_line(self):
        self.plant("protocol/base/a.h", '#include <vector>\n#include "protocol/codec/b.h"\n')
        self.assert_only(self.check(), "protocol/base/a.h:2", "may not include protocol/codec")

    def test_including_tests_is_refused(self):
        self.plant("protocol/shell/a.cc", '#include "tests/support/b.h"\n')
        self.assert_only(self.check(), "may not include tests")

    def test_unlisted_folder_is_refused(self):
        self.plant("protocol/extra/a.cc", "int a;\n")
        self.assert_only(self.check(), "protocol/extra/a.cc", "not in layers.txt")

    def test_include_that_does_not_start_at_the_root_is_refused(self):
        self.plant("protocol/base/a.cc", '#include "a.h"\n')
        self.assert_only(self.check(), "does not start at the repository root")

    def test_third_party_in_a_pure_header_is_refused(self):
        self.plant("protocol/codec/a.h", "#include <simdjson.h>\n")
        self.assert_only(self.check(), "belongs in a .cc")

    def test_unlisted_third_party_is_refused(self):
        self.plant("protocol/base/a.cc", "#include <simdjson.h>\n")
        self.plant("protocol/shell/a.cc", "#include <openssl/ssl.h>\n")
        self.assertEqual(len(self.check()), 2)

    def test_impure_library_header_in_a_pure_folder_is_refused(self):
        self.plant("protocol/base/a.cc", "#include <thread>\n")
        self.assert_only(self.check(), "<thread>")


    def test_listed_folder_without_files_and_arrow_to_nowhere_are_named(self):
        layers = check_layers.load_layers(self.plant("layers.txt", "protocol/base | schema | pure |\nprotocol/shell | protocol/* | impure |\n"))
        self.plant("protocol/base/a.h", "")
        self.plant("schema/a.json", "")
        shell = self.plant("protocol/shell/a.cc", "")
        self.assertEqual(check_layers.check_listing(self.root, layers), [])
        shell.unlink()
        self.assert_only(check_layers.check_listing(self.root, layers), "protocol/shell is listed and has no files")
        layers = check_layers.load_layers(self.plant("layers.txt", "protocol/base | protocol/gone | pure |\n"))
        self.assert_only(check_layers.check_listing(self.root, layers), "may include protocol/gone")


class Purity(Planted):
    def check(self, body, folder="protocol/codec"):
        source = self.plant(f"{folder}/a.cc", body)
        library = self.root / "build" / folder / f"lib{folder.replace('/', '_')}.a"
        library.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O2", "-c", source, "-o", self.root / "a.o"], check=True)
        subprocess.run(["ar", "crs", library, self.root / "a.o"], check=True)
        layers = check_layers.load_layers(self.plant("layers.txt", LAYERS))
        return check_purity.check(self.root, self.root / "build", layers)[0]

    def test_containers_pass(self):
        self.assertEqual(self.check("#include <string>\n#include <vector>\n"
                                    "std::vector<std::string> f(std::string a) { return {a, a}; }"), [])

    def test_clock_is_caught(self):
        self.assert_only(self.check("#include <chrono>\nauto f() { return std::chrono::steady_clock::now(); }"), "now()")

    def test_socket_environment_and_console_are_caught(self):
        problems = self.check("#include <cstdio>\n#include <cstdlib>\n#include <sys/socket.h>\n"
                              "int f() { std::puts(std::getenv(\"A\")); return socket(1, 2, 3); }")
        self.assertEqual(len(problems), 3, problems)

    def test_randomness_and_threads_are_caught(self):
        self.assertTrue(self.check("#include <random>\nunsigned f() { return std::random_device{}(); }"))
        self.assertTrue(self.check("#include <thread>\nvoid f() { std::thread([] {}).detach(); }"))

    def test_only_base_may_abort(self):
        body = "#include <cstdlib>\nvoid f() { std::abort(); }"
        self.assert_only(self.check(body), "abort")
        self.assertEqual([p for p in self.check(body, "protocol/base") if "protocol/base" in p], [])

    def test_library_that_was_not_built_is_a_problem(self):
        self.plant("protocol/base/b.cc", "int b;")
        self.assertTrue(any("was not built" in problem for problem in self.check("int a;")))


class Requirements(Planted):
    def setUp(self):
        super().setUp()
        self.plant("docs/protocol.md", "**WIN-1** The sender MUST count.\n\n- **WIN-2** It MUST stop.\n")
        self.plant("protocol/session/a.cc", "//= WIN-1\n//= WIN-2\n")
        self.plant("tests/unit/a_test.cc", "//= WIN-1, WIN-2\n")

    def check(self):
        return check_requirements.check(self.root)[0]

    def test_cited_clauses_pass(self):
        self.assertEqual(self.check(), [])

    def test_clause_without_test_is_named(self):
        self.plant("tests/unit/a_test.cc", "//= WIN-1\n")
        self.assert_only(self.check(), "WIN-2 is cited by no test")

    def test_clause_without_code_is_named(self):
        self.plant("protocol/session/a.cc", "//= WIN-1\n")
        self.assert_only(self.check(), "WIN-2 is cited by no code")

    def test_citation_of_an_unknown_clause_is_named(self):
        self.plant("protocol/session/b.cc", "int a;\n//= WIN-9\n")
        self.assert_only(self.check(), "protocol/session/b.cc:2", "WIN-9")

    def test_status_with_a_reason_exempts_and_without_does_not(self):
        self.plant("docs/protocol.md", "**WIN-1** A.\n\n**WIN-2** B.\n\n**WIN-3** C. (status: operators obey this by hand, no program can)\n")
        self.assertEqual(self.check(), [])
        self.plant("docs/protocol.md", "**WIN-1** A.\n\n**WIN-2** B.\n\n**WIN-3** C. (status: not yet)\n")
        self.assert_only(self.check(), "WIN-3 has a status without a reason")

    def test_comment_forms_of_scripts_schemas_and_models_count(self):
        self.plant("docs/protocol.md", "".join(f"**WIN-{i}** A.\n\n" for i in range(1, 6)))
        self.plant("protocol/codec/a.py", "#= WIN-3\n")
        self.plant("schema/messages/a.schema.json", '{\n  "$comment": "//= WIN-4, WIN-5",\n}\n')
        self.plant("tests/model/a.pml", "  /*= WIN-3 */\n//= WIN-4,WIN-5\n")
        self.assertEqual(self.check(), [])

    def test_citation_where_nothing_is_obeyed_or_proved_is_named(self):
        self.plant("tests/unit/a_test.cc", "//= WIN-1\n")
        for name, line in (("tests/CMakeLists.txt", "#= WIN-2\n"), ("tests/notes.txt", "//= WIN-2\n"), ("tests/a.json", "//= WIN-2\n")):
            with self.subTest(name=name):
                planted = self.plant(name, line)
                problems = self.check()
                self.assertEqual(len(problems), 2, problems)
                self.assertIn(f"{name}:1", problems[0])
                self.assertIn("WIN-2 is cited by no test", problems[1])
                planted.unlink()

    def test_line_that_is_more_than_a_citation_is_named(self):
        for line in ("//= WIN-1 WIN-2", "//= WIN-1, and WIN-2", "//= WIN-1: because", "int a;  //= WIN-1", 'f("//= WIN-1");', "//= see WIN-1",
                     "#= WIN-1", "--= WIN-1", "//= WIN-1,"):
            with self.subTest(line=line):
                self.plant("tests/unit/b_test.cc", f"int b;\n{line}\n")
                self.assert_only(self.check(), "tests/unit/b_test.cc:2", "line of its own")

    def test_clause_defined_twice_is_named(self):
        self.plant("docs/protocol.md", "**WIN-1** A.\n\n**WIN-2** B.\n\n**WIN-1** C.\n")
        self.assert_only(self.check(), "WIN-1 is defined twice")

    def test_document_without_clauses_is_a_problem(self):
        self.plant("docs/protocol.md", "nothing\n")
        self.assertTrue(any("no clause found" in problem for problem in self.check()))


class Size(Planted):
    def commands(self, *pairs):
        entries = [{"directory": str(self.root), "file": name, "command": f"g++ -o CMakeFiles/{target}.dir/x.o"} for name, target in pairs]
        self.plant("build/compile_commands.json", json.dumps(entries))

    def test_long_file_is_named_and_generated_one_is_not(self):
        self.plant("protocol/a.cc", "int a;\n" * 501)
        self.plant("protocol/b.cc", "// Generated by a tool.\n" + "int a;\n" * 501)
        self.assert_only(check_size.check_files(self.root)[0], "protocol/a.cc: 501 lines")

    def test_mark_is_named(self):
        self.plant("protocol/a.cc", "// FIX" "ME later\n")
        self.assert_only(check_size.check_files(self.root)[0], "protocol/a.cc:1")

    def test_long_function_is_named_and_short_one_is_not(self):
        body = "  if (x) {\n    y();\n  }\n" * 24
        self.plant("protocol/a.cc", "namespace n {\nint f() { return '{'; }\n\nint g(int a,\n      int b) {\n" + body + "}\n}\n")
        self.assertEqual(check_size.check_files(self.root)[1], ["protocol/a.cc:4: function of 75 lines"])

    def test_source_in_no_target_or_two_is_named(self):
        for name in "abc":
            self.plant(f"protocol/{name}.cc", "")
        self.commands(("protocol/a.cc", "one"), ("protocol/a.cc", "one_mutant"), ("protocol/b.cc", "one"), ("protocol/b.cc", "two"))
        problems = check_size.check_targets(self.root, [self.root / "build"])[0]
        self.assertEqual(len(problems), 2, problems)
        self.assertIn("protocol/b.cc: in 2 targets", problems[0])
        self.assertIn("protocol/c.cc: in no CMake target", problems[1])

    def test_sources_compiled_as_one_unit_count_each(self):
        for name in "ab":
            self.plant(f"protocol/{name}.cc", "")
        unit = self.plant("build/CMakeFiles/one.dir/Unity/unity_0_cxx.cxx", "".join(f'#include "{self.root}/protocol/{n}.cc"\n' for n in "ab"))
        self.commands((str(unit), "one"))
        self.assertEqual([target for _, target in tree.compile_commands(self.root / "build")], ["one", "one"])
        self.assertEqual(check_size.check_targets(self.root, [self.root / "build"])[0], [])

    def test_header_in_no_header_set_is_named(self):
        self.plant("protocol/a.h", "")
        self.plant("protocol/b.h", "")
        self.commands(("build/protocol/p_verify_interface_header_sets/protocol/a.h.cxx", "p_verify_interface_header_sets"))
        self.assert_only(check_size.check_headers(self.root, self.root / "build"), "protocol/b.h")


class Errors(Planted):
    RULES = {"no": "Do not."}
    HTTP = {"code": "E.HTTP.GONE", "meaning": "m", "status": [410]}

    def check(self, header, codes, http=(), **changes):
        self.plant("protocol/base/error_code.h", "#define CODES(X) " + " ".join(f'X(A, "{code}")' for code in header))
        entries = [{"code": code, "meaning": "m", "sender": ["worker"], "retry": "no", **changes} for code in codes]
        self.plant("schema/errors.json", json.dumps({"retry_rules": self.RULES, "codes": entries, "http": list(http)}))
        return check_errors.check(self.root)[0]

    def test_same_lists_pass(self):
        self.assertEqual(self.check(["E.A.B", "E.C"], ["E.C", "E.A.B"]), [])

    def test_differences_are_named_both_ways(self):
        self.assert_only(self.check(["E.A", "E.B"], ["E.A"]), "error_code.h: E.B is not in")
        self.assert_only(self.check(["E.A"], ["E.A", "E.B"]), "errors.json: E.B is not in")

    def test_incomplete_entry_is_named(self):
        self.assert_only(self.check(["E.A"], ["E.A"], retry=""), "E.A has no retry")
        self.assert_only(self.check(["E.A"], ["E.A"], meaning=""), "E.A has no meaning")
        self.assert_only(self.check(["E.A"], ["E.A"], sender=[]), "E.A has no sender")

    def test_unknown_sender_is_named(self):
        for sender in ("worker", ["worker", "broker"], ["worker", "local"]):
            self.assert_only(self.check(["E.A"], ["E.A"], sender=sender), "E.A has the sender")

    def test_retry_rule_without_an_explanation_is_named(self):
        self.assert_only(self.check(["E.A"], ["E.A"], retry="soon"), "E.A has the retry rule 'soon'")

    def test_code_of_a_document_or_a_literal_that_is_not_listed_is_named(self):
        for name, text in (("docs/a.md", "Says `E.NEW.ONE`.\n"), ("docs/openapi.json", '{"description": "E.NEW.ONE"}'),
                           ("scheduler/README.md", "E.NEW.ONE\n"), ("runtime/shell/a.cc", 'auto a = "E.NEW.ONE";\n'),
                           ("runtime/shell/a.h", 'auto a = "E.NEW." + b;\n'), ("docs/b.md", "all of E.NEW.*\n")):
            with self.subTest(name=name):
                planted = self.plant(name, text)
                self.assert_only(self.check(["E.A.B"], ["E.A.B"]), f"{name}:1", "E.NEW.")
                planted.unlink()
        self.plant("docs/a.md", "`E.A.B` is one of `E.A.*`.\n")
        self.plant("runtime/shell/a.cc", '// like E.NEW.ONE\nauto a = "E.A." + b;\n')
        self.assertEqual(self.check(["E.A.B"], ["E.A.B"]), [])

    def test_code_of_http_is_used_with_a_status_that_is_listed(self):
        answer = self.plant("runtime/shell/a.cc", 'return {410, "E.HTTP.GONE", "gone"};\n')
        self.assertEqual(self.check(["E.A"], ["E.A"], [self.HTTP]), [])
        self.assert_only(self.check(["E.A"], ["E.A"], [{**self.HTTP, "status": [404]}]), "runtime/shell/a.cc", "with 410")
        self.assertIn("no HTTP refusal", self.check(["E.A"], ["E.A"], [{**self.HTTP, "status": [410, 200]}])[0])
        self.assert_only(self.check(["E.A"], ["E.A"], [{**self.HTTP, "meaning": ""}]), "E.HTTP.GONE has no meaning")
        answer.unlink()
        self.assert_only(self.check(["E.A"], ["E.A"], [self.HTTP]), "nothing answers so")


class Diagram(Planted):
    def test_only_the_printed_diagram_passes(self):
        tool = self.plant("tool", "#!/bin/sh\necho stateDiagram-v2\necho '  A --> B'\n")
        tool.chmod(0o755)
        document = self.plant("d.md", "stateDiagram-v2\n  A --> B\n")
        self.assertEqual(check_diagram.check(document, tool), [])
        document = self.plant("d.md", "stateDiagram-v2\n  A --> B\n  A --> C\n")
        self.assert_only(check_diagram.check(document, tool), "-  A --> C")
        self.assert_only(check_diagram.check(document, self.silent_tool()), "printed nothing")

    def silent_tool(self):
        tool = self.plant("silent", "#!/bin/sh\n")
        tool.chmod(0o755)
        return tool


class Format(Planted):
    def test_unformatted_file_is_named(self):
        self.plant(".clang-format", "BasedOnStyle: Google\n")
        self.plant("a.cc", "int a;\n")
        self.assertEqual(check_format.check(self.root)[0], [])
        self.plant("a.cc", "int a;\nint   b ;\n")
        self.assert_only(check_format.check(self.root)[0], "a.cc:2")


class Paths(Planted):
    def test_checkout_host_and_dead_link_are_named(self):
        self.plant("docs/a.md", "[b](b.md), `[c](c.md)`\n")
        self.plant("docs/b.md", "fine\n")
        self.assertEqual(check_paths.check(self.root), [])
        self.plant("docs/b.md", f"see {os.path.realpath(self.root)}/docs\n")
        self.assert_only(check_paths.check(self.root), "docs/b.md:1: names the checkout")
        self.plant("docs/b.md", "from http:/" + "/deb.debian" + ".org/x\n")
        self.assert_only(check_paths.check(self.root), "names a package host")
        self.plant("docs/b.md", "[a](../a.md)\n")
        self.assert_only(check_paths.check(self.root), "docs/b.md:1: links to ../a.md")

    def test_installed_document_links_to_installed_ones(self):
        self.plant("CMakeLists.txt", "install(FILES docs/a.md DESTINATION ${CMAKE_INSTALL_DOCDIR})\n"
                                     "install(DIRECTORY docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})\n")
        self.plant("docs/a.md", "[x](examples/x.toml) [a](a.md)\n")
        self.plant("docs/b.md", "[a](a.md)\n")
        self.plant("docs/examples/x.toml", "")
        self.assertEqual(check_paths.check(self.root), [])
        self.plant("docs/a.md", "[b](b.md)\n")
        self.assert_only(check_paths.check(self.root), "docs/a.md:1: links to b.md, which is not installed")


class Changed(Planted):
    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=n", "-c", "user.email=e@example.test", *arguments],
                       check=True, capture_output=True)

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def tidy(self, names, budget=50, build="build"):
        return check_tidy.check(self.root, [self.root / build, self.root / "build/fuzz"], names, budget)

    def database(self, build, *names):
        entries = [{"directory": str(self.root), "file": name, "command": f"g++ -c {name}"} for name in names]
        self.plant(f"{build}/compile_commands.json", json.dumps(entries))

    def setUp(self):
        super().setUp()
        os.environ.pop("WINDLASS_LINT_BASE", None)
        self.plant(".clang-tidy", "Checks: '-*,bugprone-*'\nWarningsAsErrors: '*'\n")
        self.plant(".gitignore", "/build/\n")
        self.database("build", "a.cc", "b.cc")
        self.git("init", "-q", "-b", "main")

    FINDING = "bool f(int a) { return sizeof(sizeof(a)) == 1; }\n"

    def test_finding_in_a_changed_file_is_named_and_older_files_are_left_alone(self):
        self.plant("a.cc", self.FINDING)
        self.commit("first")
        self.plant("b.cc", "int b;\n")
        self.commit("second")
        self.assertEqual(changed.files(self.root), ["b.cc"])
        quiet = self.tidy(["b.cc"])
        self.assertEqual((quiet.problems, quiet.seen, quiet.notes()), ([], ["b.cc"], []))
        self.plant("b.cc", self.FINDING)
        self.assert_only(self.tidy(changed.files(self.root)).problems, "b.cc:1", "bugprone-sizeof-expression")

    def test_budget_that_runs_out_says_how_many_were_left(self):
        self.plant("b.cc", "int b;\n")
        looked = self.tidy(["b.cc"], budget=0.001)
        self.assertEqual(looked.seen, [])
        self.assert_only(looked.notes(), "1 files were not looked at")

    def test_unknown_base_is_one_sentence_and_a_failure(self):
        self.plant("a.cc", "int a;\n")
        self.commit("first")
        for check in ("tidy", "headers"):
            run = subprocess.run([sys.executable, "-B", HERE / f"check_{check}.py", "--root", self.root, "--build", self.root / "build"],
                                 env={**os.environ, "WINDLASS_LINT_BASE": "nowhere"}, capture_output=True, text=True)
            self.assertEqual(run.returncode, 1, run.stdout)
            self.assertIn("WINDLASS_LINT_BASE is 'nowhere'", run.stdout)
            self.assertEqual(run.stderr, "")

    def test_base_that_is_asked_for_is_taken(self):
        for name in "abc":
            self.plant(f"{name}.cc", "int a;\n")
            self.commit(name)
        with unittest.mock.patch.dict(os.environ, {"WINDLASS_LINT_BASE": "HEAD~2"}):
            self.assertEqual(changed.files(self.root), ["b.cc", "c.cc"])
        with unittest.mock.patch.dict(os.environ, {"WINDLASS_LINT_BASE": "HEAD"}):
            self.assertEqual(changed.files(self.root), [])

    def test_without_a_base_every_file_counts(self):
        self.plant("a.cc", "int a;\n")
        self.commit("first")
        self.plant("b.cc", "int b;\n")
        self.commit("second")
        clone = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, clone)
        self.git("clone", "-q", "--depth", "1", f"file://{self.root}", str(clone / "shallow"))
        self.assertEqual(changed.files(clone / "shallow"), ["a.cc", "b.cc"])

    def test_file_that_no_build_compiles_is_not_counted_and_the_fuzzing_build_counts(self):
        for name in "ac":
            self.plant(f"{name}.cc", self.FINDING)
        looked = self.tidy(["a.cc", "c.cc"])
        self.assertEqual((looked.seen, looked.without), (["a.cc"], ["c.cc"]))
        self.assert_only(looked.notes(), "1 files are compiled by no build at hand", "c.cc")
        self.database("build/fuzz", "c.cc", "a.cc")
        looked = self.tidy(["a.cc", "c.cc"])
        self.assertEqual((looked.seen, looked.notes()), (["a.cc", "c.cc"], []))
        self.assertEqual(len(looked.problems), 2, looked.problems)
        self.assert_only(check_headers.check(self.root, [self.root / "build"], ["x.h"])[1], "x.h")

    def test_build_that_is_not_configured_is_a_problem(self):
        self.assert_only(self.tidy(["a.cc"], build="other").problems, "not configured")
        self.assert_only(check_headers.check(self.root, [self.root / "other"], ["a.h"])[0], "not configured")

    def test_header_that_needs_another_first_is_named(self):
        unit = "x_verify_interface_header_sets/protocol/a.h.cxx"
        self.plant("protocol/a.h", "inline std::string a;\n")
        self.plant(f"build/{unit}", '#include "protocol/a.h"\n')
        entry = {"directory": str(self.root / "build"), "file": unit, "command": f"g++ -I.. -o a.o -c {unit}"}
        self.plant("build/compile_commands.json", json.dumps([entry]))
        problems, without = check_headers.check(self.root, [self.root / "build"], ["protocol/a.h"])
        self.assert_only(problems, "protocol/a.h: does not compile by itself")
        self.plant("protocol/a.h", "#include <string>\ninline std::string a;\n")
        self.assertEqual(check_headers.check(self.root, [self.root / "build"], ["protocol/a.h"]), ([], []))
        self.assertEqual(without, [])


if __name__ == "__main__":
    unittest.main()
