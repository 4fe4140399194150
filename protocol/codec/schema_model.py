"""Reads schema/messages and refuses what the generator does not understand.

Owns loading, $ref resolution and the list of known keywords. A keyword that is not listed is a build error: a rule
somebody adds to a schema is enforced or the build fails, it is never skipped.
"""

import json
import pathlib

ANNOTATIONS = {"$schema", "$id", "title", "description", "$comment", "$defs"}
BY_TYPE = {
    "object": {"properties", "required", "additionalProperties", "maxProperties", "if", "then", "else"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"minLength", "maxLength", "pattern", "enum"},
    "integer": {"minimum", "maximum", "const"},
    "number": {"minimum", "maximum"},
    "boolean": set(),
    "null": set(),
}


class SchemaError(Exception):
    pass


class Schema:
    """One file. name is `ack` or `ack.revision1`; base is `ack` for both."""

    def __init__(self, path):
        self.name = path.name.removesuffix(".schema.json")
        self.base = self.name.removesuffix(".revision1")
        self.root = json.loads(path.read_text(encoding="utf-8"))

    def resolve(self, node, where):
        if "$ref" not in node:
            self._check(node, where)
            return node
        extra = set(node) - {"$ref"} - ANNOTATIONS
        if extra:
            raise SchemaError(f"{self.name}{where}: {sorted(extra)} beside $ref")
        prefix = "#/$defs/"
        if not node["$ref"].startswith(prefix):
            raise SchemaError(f"{self.name}{where}: only {prefix} references are known")
        return self.resolve(self.root["$defs"][node["$ref"].removeprefix(prefix)], where)

    def _check(self, node, where):
        types = types_of(node)
        if not types:
            raise SchemaError(f"{self.name}{where}: needs a type")
        known = {"type"} | ANNOTATIONS
        for t in types:
            if t not in BY_TYPE:
                raise SchemaError(f"{self.name}{where}: unknown type {t}")
            known |= BY_TYPE[t]
        unknown = set(node) - known
        if unknown:
            raise SchemaError(f"{self.name}{where}: the generator does not know {sorted(unknown)}")
        scalars = [t for t in types if t != "null"]
        if len(scalars) > 1 and set(node) - {"type"} - ANNOTATIONS:
            raise SchemaError(f"{self.name}{where}: bounds on several types at once")


def types_of(node):
    types = node.get("type", [])
    return [types] if isinstance(types, str) else types


def load(folder):
    """All schemas, by name."""
    paths = sorted(pathlib.Path(folder).glob("*.schema.json"))
    return {s.name: s for s in map(Schema, paths)}
