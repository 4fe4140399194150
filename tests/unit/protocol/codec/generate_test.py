"""The validators follow the schemas: every change of a rule changes them, what they do not understand fails the build,
and the bounds are those of protocol/base/limits.h. Run: generate_test.py <repository root>."""

import functools
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
CODEC = ROOT / "protocol/codec"
MESSAGES = ROOT / "schema/messages"
sys.dont_write_bytecode = True
sys.path.insert(0, str(CODEC))
import generate  # noqa: E402
import regex_dfa  # noqa: E402
import schema_model  # noqa: E402

regex_dfa.compile_pattern = functools.lru_cache(regex_dfa.compile_pattern)  # the same patterns hundreds of times


def at(node, path):
    for step in path:
        node = node[step]
    return node


class Generate(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.schemas = self.folder / "messages"
        shutil.copytree(MESSAGES, self.schemas)

    def generate(self):
        """(error, output), one of them empty."""
        try:
            return "", generate.Generator(schema_model.load(self.schemas)).run()
        except (schema_model.SchemaError, regex_dfa.PatternError) as error:
            return str(error), ""

    def test_the_script_says_what_it_refuses(self):
        self.edit("ack", ("properties", "info"), "format", "uri")
        run = subprocess.run([sys.executable, "-B", CODEC / "generate.py", self.schemas, self.folder / "out.cc"],
                             capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("format", run.stderr)
        self.assertFalse((self.folder / "out.cc").exists())

    def edit(self, name, path, key, value):
        file = self.schemas / f"{name}.schema.json"
        schema = json.loads(file.read_text())
        at(schema, path)[key] = value
        file.write_text(json.dumps(schema))

    def test_output_depends_on_the_schemas_alone(self):
        error, output = self.generate()
        self.assertEqual(error, "")
        self.assertEqual((error, output), self.generate())

    def test_every_bound_is_in_the_validator(self):
        """Changes each number, pattern, enum and list of required members in turn."""
        _, before = self.generate()
        changed = 0
        for file in sorted(MESSAGES.glob("*.json")):
            name = file.name.removesuffix(".schema.json")
            for path, key, value in list(self.rules(json.loads(file.read_text()), ())):
                with self.subTest(schema=name, path=path, key=key):
                    shutil.copy(file, self.schemas / file.name)
                    self.edit(name, path, key, value)
                    error, after = self.generate()
                    self.assertEqual(error, "")
                    self.assertNotEqual(before, after)
                    changed += 1
            shutil.copy(file, self.schemas / file.name)
        self.assertGreater(changed, 150)

    def rules(self, node, path):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key in ("maxLength", "maximum", "maxItems", "minItems", "minLength") and path[-1:] != ("properties",):
                larger = key in ("maximum", "minLength", "minItems") and value < 2**64 - 1
                yield path, key, value + 1 if larger else value - 1 if value else 1
            elif key == "pattern" and isinstance(value, str):
                yield path, key, value.replace("^", "^x", 1)
            elif key == "enum":
                yield path, key, value[:-1]
            elif key == "required" and len(value) > 1:
                yield path, key, value[:-1]
            elif isinstance(value, (dict, list)) and key != "$defs" or key == "$defs":
                yield from self.rules(value, path + (key,))

    def test_every_property_is_described_and_the_validators_do_not_care(self):
        _, before = self.generate()
        for file in sorted(self.schemas.glob("*.json")):
            schema = json.loads(file.read_text())
            for path, node in self.members(schema, ()):
                with self.subTest(schema=file.name, path=path):
                    self.assertTrue(node.pop("description", ""))
            file.write_text(json.dumps(schema))
        self.assertEqual(self.generate(), ("", before))

    def members(self, node, path):
        for key, value in node.get("properties", {}).items():
            yield path + (key,), value
            yield from self.members(value, path + (key,))
            yield from self.members(value.get("items", {}), path + (key,))

    def test_an_unknown_keyword_fails_the_build(self):
        for name, path, key, value in [
            ("ack", ("properties", "info"), "format", "uri"),
            ("ack", ("properties", "recv_window"), "multipleOf", 2),
            ("envelope", ("properties", "flags"), "uniqueItems", True),
            ("heartbeat", (), "minProperties", 1),
            ("reset", ("properties", "code"), "not", {"const": ""}),
            ("drain", (), "oneOf", []),
        ]:
            with self.subTest(key=key):
                shutil.copy(MESSAGES / f"{name}.schema.json", self.schemas)
                self.edit(name, path, key, value)
                self.assertIn(key, self.generate()[0])
                shutil.copy(MESSAGES / f"{name}.schema.json", self.schemas)

    def test_what_cannot_be_bounded_or_stored_fails_the_build(self):
        for name, path, key, value in [
            ("ack", ("properties",), "weight", {"type": "string", "minLength": 1}),      # no maxLength
            ("ack", ("properties",), "weight", {"type": "array", "items": {"type": "string"}}),  # no maxItems
            ("ack", ("properties",), "weight", {"type": "integer", "minimum": 0}),       # no maximum
            ("ack", ("properties",), "weight", {"type": "object", "properties": {}}),    # open or closed?
            ("ack", ("properties", "info"), "pattern", "^(?=x)"),                        # not a plain pattern
            ("ack", (), "if", {"minProperties": 2}),
        ]:
            with self.subTest(value=value):
                self.edit(name, path, key, value)
                self.assertNotEqual(self.generate()[0], "")
                shutil.copy(MESSAGES / f"{name}.schema.json", self.schemas)

    def test_a_binding_without_its_property_fails_the_build(self):
        file = self.schemas / "reset.schema.json"
        schema = json.loads(file.read_text())
        del schema["properties"]["retry_after_ms"]
        file.write_text(json.dumps(schema))
        self.assertIn("retry_after_ms", self.generate()[0])


class Patterns(unittest.TestCase):
    def test_tables_match_what_regular_expressions_match(self):
        patterns = {m for file in MESSAGES.glob("*.json") for m in self.patterns(json.loads(file.read_text()))}
        self.assertGreaterEqual(len(patterns), 5)
        seeds = ["2024-02-29T12:00:00Z", "2024-12-31T23:59:60.123456789+05:30", "control.ack", "biz.a-b.c_d", "E.TIMEOUT",
                 "E.A.B_1", "ff0", "control.", "2024-02-30T00:00:00Z", "2024-04-31T00:00:00Z", "~ !", ""]
        letters = ["", "0", "9", "3", "-", ":", "T", "Z", "a", "A", ".", "E", "_", "\n", " ", "~", "\x7f", "é"]
        chance = random.Random(1)
        for pattern in sorted(patterns):
            classes, table, start, accepting = regex_dfa.compile_pattern(pattern)
            expected = re.compile(pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern)
            matches = 0
            for _ in range(20000):
                text = chance.choice(seeds)
                for _ in range(chance.randrange(3)):
                    k = chance.randrange(len(text) + 1)
                    text = text[:k] + chance.choice(letters) + text[k + chance.randrange(2):]
                state = start
                for byte in text.encode():
                    state = table[state][classes[byte]]
                self.assertEqual(accepting[state], bool(expected.search(text)), (pattern, text))
                matches += accepting[state]
            self.assertGreater(matches, 100, pattern)

    def patterns(self, node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if key == "pattern" and isinstance(value, str):
                yield value
            elif isinstance(value, (dict, list)):
                yield from self.patterns(value)


class Limits(unittest.TestCase):
    def test_bounds_are_those_of_limits_h(self):
        text = (ROOT / "protocol/base/limits.h").read_text()
        limits = {}
        for name, value in re.findall(r"constexpr [\w:]+ (k\w+) = ([^;]+);", text):
            value = re.sub(r"std::uint64_t\{1\} << 53U", "1 << 53", value)
            value = re.sub(r"seconds\{(.*)\}", r"(\1)", value)
            if re.fullmatch(r"[\d\s*()<+-]+", value):
                limits[name] = eval(value)  # digits and operators only
        envelope, one = self.schema("envelope"), self.schema("envelope.revision1")
        register, ack = self.schema("register"), self.schema("ack")
        for expected, actual in {
            "kIdBytesMax": [envelope["$defs"]["id"]["maxLength"], one["$defs"]["id"]["maxLength"],
                            self.schema("resume")["properties"]["session_id"]["maxLength"]],
            "kTypeBytesMax": [envelope["properties"]["type"]["maxLength"], one["properties"]["type"]["maxLength"]],
            "kTenantBytesMax": [envelope["properties"]["tenant"]["maxLength"], one["properties"]["tenant"]["maxLength"]],
            "kFlagsMax": [envelope["properties"]["flags"]["maxItems"], one["properties"]["flags"]["maxItems"]],
            "kNameBytesMax": [register["$defs"]["name"]["maxLength"]],
            "kCapabilitiesMax": [register["$defs"]["names"]["maxItems"]],
            "kReasonBytesMax": [self.schema("reset")["properties"]["reason"]["maxLength"],
                                ack["properties"]["info"]["maxLength"]],
            "kTokenBytesMax": [self.schema("handshake")["properties"]["auth"]["properties"]["token"]["maxLength"],
                               self.schema("resume")["properties"]["session_token"]["maxLength"]],
            "kIntegerMax": [envelope["$defs"]["integer"]["maximum"], ack["$defs"]["integer"]["maximum"]],
            "kWindowFramesMax": [ack["properties"]["recv_window"]["maximum"],
                                 ack["properties"]["ack_bitmap"]["maxLength"] * 4],
            "kFrameBytesLeast": [self.schema("session.accept")["properties"]["frame_bytes_max"]["minimum"]],
            "kMetricsMax": [self.schema("heartbeat")["properties"]["metrics"]["maxProperties"]],
            "kIntervalMax": [self.schema("reset")["properties"]["retry_after_ms"]["maximum"] // 1000,
                             self.schema("session.accept")["properties"]["resume_ttl_ms"]["maximum"] // 1000],
            "kWindowFramesRevision1Max": [self.schema("ack.revision1")["properties"]["recv_window"]["maximum"]],
        }.items():
            for value in actual:
                self.assertEqual(limits[expected], value, expected)

    def schema(self, name):
        return json.loads((MESSAGES / f"{name}.schema.json").read_text())


if __name__ == "__main__":
    unittest.main()
