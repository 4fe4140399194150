"""The wire as schema/ describes it: strict JSON, and the published JSON schemas with the keywords that they use."""
import functools
import json
import math
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "schema" / "messages"
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


class Flaw(Exception):
    """One place that is wrong: error code, JSON pointer, and the schema and keyword that say so."""

    def __init__(self, code, pointer="", keyword="", schema="json"):
        super().__init__(f"{code}{' ' + pointer + ':' if pointer else ''} {schema} {keyword}")
        self.code, self.pointer, self.keyword, self.schema = code, pointer, keyword, schema
        self.name = f"{schema}:{pointer}:{keyword}"


class Object(dict):
    """A JSON object that remembers keys that occurred twice."""
    twice = ()


@functools.cache
def load(name):
    return json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def names(revision):
    """The control types that a revision defines."""
    tail = ".revision1.schema.json" if revision == 1 else ".schema.json"
    found = {path.name[:-len(tail)] for path in FOLDER.glob("*" + tail)}
    return {"control." + name for name in found if name != "envelope" and "revision" not in name}


# ---- JSON

def _pairs(members):
    made, seen = Object(), set()
    made.twice = tuple(key for key, _ in members if key in seen or seen.add(key))
    made.update(members)
    return made


def _bad(keyword):
    raise Flaw("E.PROTO.JSON", keyword=keyword)


def _float(text):
    value = float(text)
    return value if math.isfinite(value) else _bad("number")


def _integer(text):
    value = int(text)
    return value if -2**63 <= value < 2**64 else _bad("integer")


def _depth(value, left):
    if left < 0:
        _bad("depth")
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _depth(member, left - 1)


DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_float, parse_int=_integer, parse_constant=lambda _: _bad("constant"))


def parse(text, accepts=(), deepest=32):
    """One JSON value out of text, or a Flaw. What `accepts` names is let pass."""
    try:
        text = text.strip(" \t\r\n")
        value, end = DECODER.raw_decode(text)
        if text[end:].strip(" \t\r\n") and "json::trailing" not in accepts:
            _bad("trailing")
        if "json::depth" not in accepts:
            _depth(value, deepest)
        if "json::surrogate" not in accepts:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeEncodeError:
        return _bad("surrogate")
    except RecursionError:
        return _bad("depth")
    except ValueError:
        return _bad("syntax")


def payload_text(text, default="{}"):
    """The very text of the member `payload` of an envelope."""
    at, last = text.find('"'), default
    while at >= 0:
        key, end = DECODER.raw_decode(text, at)
        start = re.compile(r"\s*:\s*").match(text, end).end()
        _, end = DECODER.raw_decode(text, start)
        if key == "payload":
            last = text[start:end]
        at = text.find('"', end)
    return last


# ---- JSON Schema

def _is(value, kind):
    if kind in ("integer", "number"):
        return type(value) is int or kind == "number" and type(value) is float
    return isinstance(value, TYPES[kind])


def flaws(value, schema, name, pointer="", root=None):
    """Every keyword that `value` breaks, in order of the schema."""
    root = schema if root is None else root
    def wrong(keyword, at=pointer):
        return Flaw("E.PROTO.SCHEMA", at, keyword, name)
    def below(sub, at=pointer, member=value):
        return flaws(member, sub, name, at, root)
    if schema is False:
        yield wrong("false")
        return
    if "$ref" in schema:
        yield from below(root["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield wrong("type")
        return
    if "enum" in schema and value not in schema["enum"]:
        yield wrong("enum")
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        yield wrong("const")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield wrong("minimum")
        if value > schema.get("maximum", value):
            yield wrong("maximum")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield wrong("minLength")
        if len(value) > schema.get("maxLength", len(value)):
            yield wrong("maxLength")
        if "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
            yield wrong("pattern")
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield wrong("minItems")
        if len(value) > schema.get("maxItems", len(value)):
            yield wrong("maxItems")
        for index, member in enumerate(value if "items" in schema else ()):
            yield from below(schema["items"], f"{pointer}/{index}", member)
    if isinstance(value, dict):
        members, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        if "type" in schema and (members or others is not True):  # not in an if, then or else
            for key in getattr(value, "twice", ()):
                yield wrong("twice", f"{pointer}/{escape(key)}")
        if len(value) > schema.get("maxProperties", len(value)):
            yield wrong("maxProperties")
        for key in schema.get("required", ()):
            if key not in value:
                yield wrong("required", f"{pointer}/{key}")
        for key, member in value.items():
            at = f"{pointer}/{escape(key)}"
            if key in members:
                yield from below(members[key], at, member)
            elif others is False:
                yield wrong("additionalProperties", at)
            elif others is not True:
                yield from below(others, at, member)
    if "if" in schema:
        holds = next(below(schema["if"]), None) is None
        yield from below(schema.get("then" if holds else "else", {}))


def escape(key):
    return key.replace("~", "~0").replace("/", "~1")


def validate(value, name, pointer="", accepts=()):
    """Raises the first flaw that `accepts` does not name, as schema:pointer:keyword or schema:pointer:*."""
    for flaw in flaws(value, load(name), name, pointer):
        if flaw.name not in accepts and f"{flaw.schema}:{flaw.pointer}:*" not in accepts:
            raise flaw


def validate_frame(frame, revision, accepts=(), envelope_only=False):
    """ENV-2: the envelope, then the payload by its type."""
    tail = ".revision1" if revision == 1 else ""
    validate(frame, "envelope" + tail, "", accepts)
    if frame.get("type") in names(revision) and not envelope_only:
        validate(frame["payload"], frame["type"][len("control."):] + tail, "/payload", accepts)
