"""Writes the validators of protocol/codec from schema/messages, at build time.

    generate.py <schema/messages> <output.cc>

One function per object of a schema: it walks the members once, checks every rule and stores every value. What goes
where is in bindings.py, what a schema may say in schema_model.py, patterns become tables in regex_dfa.py.
"""

import pathlib
import re
import sys

import bindings
import regex_dfa
import schema_model
from schema_model import SchemaError, types_of

# Two shapes that need no table: a literal prefix, and characters of one range throughout.
PREFIX_PATTERN = re.compile(r"\^(?:[A-Za-z0-9_]|\\\.)+")
RUN_PATTERN = re.compile(r"\^\[([ -~])-([ -~])\]([+*])\$")
NAMES_MAX = 256  # TapeReader::kNamesMax


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Generator:
    def __init__(self, schemas):
        self.schemas = schemas
        self.patterns = {}
        self.functions = []

    def pattern(self, text):
        """The C++ expression over `{}` that says whether a text matches."""
        if PREFIX_PATTERN.fullmatch(text):
            return "{}.starts_with(" + quoted(text[1:].replace("\\.", ".")) + ")"
        if run := RUN_PATTERN.fullmatch(text):
            first, last, least = run.groups()
            some = "!{}.empty() && " if least == "+" else ""
            return f"({some}is_within<{ord(first)}, {ord(last)}>({{}}))"
        number = self.patterns.setdefault(text, len(self.patterns))
        return f"matches_{number}({{}})"

    def pattern_code(self, text, number):
        classes, table, start, accepting = regex_dfa.compile_pattern(text)
        width = max(classes) + 1
        rows = [[target * width for target in row] for row in table]  # states as row offsets save a multiplication
        kind = "std::uint8_t" if len(table) * width < 256 else "std::uint16_t"
        accepts = [accepting[i // width] for i in range(len(table) * width)]
        return "\n".join([
            f"// {text}",
            f"bool matches_{number}(std::string_view text) {{",
            f"  static constexpr std::uint8_t kClass[256] = {{{', '.join(map(str, classes))}}};",
            f"  static constexpr {kind} kNext[] = {{{', '.join(str(t) for row in rows for t in row)}}};",
            f"  static constexpr bool kAccepts[] = {{{', '.join(str(a).lower() for a in accepts)}}};",
            f"  std::size_t state = {start * width};",
            "  for (const char c : text) state = kNext[state + kClass[static_cast<unsigned char>(c)]];",
            "  return kAccepts[state];",
            "}",
        ])

    def run(self):
        readers = {name: ObjectReader(self, schema, bindings.STRUCTS[schema.base],
                                      bindings.EXCEPTIONS.get(name, {})).read_root()
                   for name, schema in self.schemas.items()}
        payloads = sorted({s.base for s in self.schemas.values()} - {"envelope"})
        if set(payloads) | {"envelope"} != set(bindings.STRUCTS):
            raise SchemaError("bindings.STRUCTS and the schemas differ")
        out = [
            "// Generated from schema/messages by protocol/codec/generate.py. Do not edit.",
            '#include "protocol/codec/validators.h"',
            "#include <cstddef>", "#include <cstdint>", "#include <string_view>", "#include <type_traits>",
            '#include "protocol/codec/characters.h"',
            "namespace windlass::codec {", "namespace {",
            *[self.pattern_code(text, number) for text, number in self.patterns.items()],
            *self.functions,
            "}  // namespace",
            "bool read_envelope(TapeReader& in, Revision revision, DecodedFrame& out) {",
            f"  return revision == Revision::Two ? {readers['envelope']}(in, out)",
            f"                                   : {readers['envelope.revision1']}(in, out);",
            "}",
            "PayloadRead read_payload(TapeReader& in, Revision revision, DecodedFrame& out) {",
            "  bool good = false;",
            *dispatch("out.type", [("control." + name, self.payload(name, readers)) for name in payloads],
                      ["return PayloadRead::NotKnown;"]),
            '  if (!good) in.within("payload");',
            "  return good ? PayloadRead::Known : PayloadRead::Refused;",
            "}",
            "}  // namespace windlass::codec",
        ]
        return "\n".join(out) + "\n"

    def payload(self, name, readers):
        two, one = readers[name], readers.get(name + ".revision1", readers[name])
        call = f"{two}(in, body)" if one == two else f"revision == Revision::Two ? {two}(in, body) : {one}(in, body)"
        return [f"auto& body = out.body.emplace<{bindings.STRUCTS[name]}>();", f"good = {call};"]


def dispatch(subject, cases, otherwise):
    """A switch over texts: by length, then by comparison."""
    lines = [f"  switch ({subject}.size()) {{"]
    for size in sorted({len(text) for text, _ in cases}):
        lines.append(f"    case {size}:")
        for text, code in cases:
            if len(text) == size:
                lines += [f"      if ({subject} == {quoted(text)}) {{", *("        " + c for c in code),
                          "        break;", "      }"]
        lines += ["      " + line for line in otherwise]
    return lines + ["    default:", *("      " + line for line in otherwise), "  }"]


class ObjectReader:
    """Writes the readers of one schema's objects."""

    def __init__(self, generator, schema, struct, exceptions):
        self.generator, self.schema, self.struct, self.exceptions = generator, schema, struct, exceptions
        self.used = set()

    def read_root(self):
        name = self.read_object(self.schema.resolve(self.schema.root, ""), "", self.struct)
        unused = set(self.exceptions) - self.used
        if unused:
            raise SchemaError(f"{self.schema.name}: bindings name {sorted(unused)}, which the schema does not have")
        return name

    def read_object(self, node, path, struct):
        name = "read_" + re.sub(r"\W", "_", self.schema.name + ("." + path if path else ""))
        properties = node.get("properties", {})
        bits = {key: i for i, key in enumerate(properties)}
        if len(bits) > 32:
            raise SchemaError(f"{self.schema.name}: more than 32 properties")
        asks_null = any(isinstance(rule, dict) for branch in ("then", "else")
                        for rule in node.get(branch, {}).get("properties", {}).values())
        extra = node.get("additionalProperties", None)
        if extra is None:
            raise SchemaError(f"{self.schema.name} {path}: says nothing about additionalProperties")
        lines = [f"bool {name}(TapeReader& in, {struct}& out) {{"]
        if properties:
            lines.append("  std::uint32_t seen = 0;")
        else:
            lines.append("  static_cast<void>(out);")
        if asks_null:
            lines.append("  std::uint32_t given = 0;  // seen and not null")
        if "maxProperties" in node or extra is not False:
            lines.append("  std::size_t count = 0;")
        if extra is not False:
            lines.append("  std::size_t extra = 0;")
        lines += ["  for (bool more = in.enter(); more; more = in.next()) {", "    const std::string_view key = in.key();"]
        if "maxProperties" in node or extra is not False:
            limit = node.get("maxProperties", 0)
            if not 0 < limit <= NAMES_MAX:
                raise SchemaError(f"{self.schema.name} {path}: an open object needs maxProperties of 1 to {NAMES_MAX}")
            lines.append(f'    if (count++ == {limit}) return in.reject("must have at most {limit} members");')
        cases = [(key, self.member(properties[key], key, path, bits[key], asks_null)) for key in properties]
        lines += ["  " + line for line in dispatch("key", cases, self.extra_member(extra, path))]
        lines.append("  }")
        required = sum(1 << bits[key] for key in node.get("required", []))
        if required:
            names = ", ".join(quoted(p) for p in properties)
            lines += [f"  static constexpr std::string_view kNames[] = {{{names}}};",
                      f"  constexpr std::uint32_t kRequired = {required:#x};",
                      "  if ((seen & kRequired) != kRequired) return in.missing(kRequired & ~seen, kNames);"]
        if "if" in node:
            lines += self.condition(node, bits)
        lines += ["  return true;", "}"]
        self.generator.functions.append("\n".join(lines))
        return name

    def extra_member(self, extra, path):
        if extra is False:
            return ["return in.unknown(key);"]
        lines = ["if (!in.is_new(key, extra++)) return in.duplicate(key);"]
        if extra is True:
            return lines + ["in.skip();", "break;"]
        node = self.schema.resolve(extra, path + "/*")
        checks = self.check(node, "return in.reject(key, {})", lambda _: "", path + ".*")
        return lines + ["{", *("  " + line for line in checks), "}", "break;"]

    def member(self, node, key, path, bit, asks_null):
        where = f"{path}.{key}" if path else key
        node = self.schema.resolve(node, "/" + where.replace(".", "/"))
        lines = [f"if ((seen & {1 << bit:#x}U) != 0) return in.duplicate(key);", f"seen |= {1 << bit:#x}U;"]
        body = [f"given |= {1 << bit:#x}U;"] if asks_null else []
        body += self.value(node, where)
        if "null" in types_of(node):
            return lines + ["if (in.is_null()) {", "  in.skip();", "  break;", "}"] + body
        return lines + body

    def value(self, node, path):
        """Checks and stores the value of member `key`."""
        kind = next(t for t in types_of(node) if t != "null")
        if kind == "object":
            return self.object_value(node, path)
        if kind == "array":
            return self.array_value(node, path)
        return self.check(node, "return in.reject(key, {})", lambda value: self.store(path, value, node), path)

    def object_value(self, node, path):
        binding = self.binding(path, default=None)
        lines = ['if (!in.is_object()) return in.reject(key, "must be an object");']
        if "properties" not in node and "additionalProperties" not in node:
            if path == "payload" and self.schema.base == "envelope":
                return lines + ["out.payload = in.place();", "in.skip();"]
            return lines + [f"out.{path.rsplit('.', 1)[-1]} = in.raw();"]
        function = self.read_object(node, path, self.struct)
        if isinstance(binding, bindings.Text):
            return lines + ["const TapeReader::Place from = in.place();",
                            f"if (!{function}(in, out)) return in.within(key);",
                            f"out.{binding.field} = in.raw_since(from);"]
        return lines + [f"if (!{function}(in, out)) return in.within(key);"]

    def array_value(self, node, path):
        field = path.rsplit(".", 1)[-1]
        low, high = node.get("minItems", 0), node.get("maxItems")
        if high is None:
            raise SchemaError(f"{self.schema.name} {path}: an array needs maxItems")
        item = self.schema.resolve(node["items"], "/" + path + "/items")
        lines = ['if (!in.is_array()) return in.reject(key, "must be an array");', "std::size_t items = 0;",
                 "for (bool item = in.enter(); item; item = in.next(), ++items) {",
                 f'  if (items == {high}) return in.reject(key, "must have at most {high} items");']
        if types_of(item) == ["object"]:
            struct = bindings.ITEMS[self.schema.base][field]
            reader = ObjectReader(self.generator, self.schema, struct, exceptions={})
            function = reader.read_object(item, path + ".item", struct)
            lines += ['  if (!in.is_object()) return in.reject_item(key, items, "must be an object");',
                      f"  if (!{function}(in, out.{field}.emplace_back())) return in.within_item(key, items);"]
        else:
            lines += ["  " + line for line in self.check(item, "return in.reject_item(key, items, {})",
                                                         lambda value: f"out.{field}.push_back({value});", path)]
        lines.append("}")
        if low:
            lines.append(f'if (items < {low}) return in.reject(key, "must have at least {low} item(s)");')
        return lines

    def check(self, node, refuse, store, path):
        """Checks a scalar and calls store with the C++ name of its value."""
        kinds = types_of(node)
        scalars = [k for k in kinds if k != "null"]
        if len(kinds) > 1 and len(scalars) > 1:
            test = " && ".join(f"!in.is_{k}()" for k in kinds)
            rule = quoted("must be a " + " or ".join(kinds))
            return [f"if ({test}) {refuse.format(rule)};", "in.skip();"]
        kind = scalars[0]
        article = "an" if kind[0] in "aeio" else "a"
        lines = [f"if (!in.is_{kind}()) {refuse.format(quoted(f'must be {article} {kind}'))};"]
        return lines + getattr(self, "check_" + kind)(node, refuse, store)

    def check_boolean(self, node, refuse, store):
        return ["const bool value = in.boolean();", store("value")]

    def check_string(self, node, refuse, store):
        lines = ["const std::string_view value = in.string();"]
        low, high = node.get("minLength", 0), node.get("maxLength")
        if high is not None:
            rule = quoted(f"must have {low} to {high} characters")
            lines.append(f"if (!has_length<{low}, {high}>(value)) {refuse.format(rule)};")
        elif low:
            raise SchemaError(f"{self.schema.name}: minLength without maxLength")
        if "pattern" in node:
            test = self.generator.pattern(node["pattern"]).replace("{}", "value")
            lines.append(f"if (!{test}) {refuse.format(quoted('must match ' + node['pattern']))};")
        if "enum" in node:
            return lines + self.enumeration(node["enum"], refuse, store)
        return lines + [store("value")]

    def enumeration(self, texts, refuse, store):
        lines = []
        for i, text in enumerate(texts):
            lines.append(("} else " if i else "") + f"if (value == {quoted(text)}) {{")
            lines.append("  " + store(text))
        rule = quoted("must be one of " + ", ".join(texts))
        return lines + ["} else {", f"  {refuse.format(rule)};", "}"]

    def check_integer(self, node, refuse, store):
        low, high = node.get("minimum"), node.get("maximum")
        if "const" in node:
            low = high = node["const"]
        if low is None and high is None:
            store("value")  # can only be a value to ignore: it may be negative
            return ["in.skip();"]
        if low is None or high is None or low < 0:
            raise SchemaError(f"{self.schema.name}: an integer needs both bounds, from 0 up, or none")
        rule = quoted(f"must be from {low} to {high}" if low != high else f"must be {low}")
        tests = ["is_negative"] + ([f"value < {low}U"] if low else []) + (
            [f"value > {high}U"] if high < 2**64 - 1 else [])
        return ["const bool is_negative = in.is_negative();", "const std::uint64_t value = in.integer();",
                f"if ({' || '.join(tests)}) {refuse.format(rule)};", store("value")]

    def check_number(self, node, refuse, store):
        low, high = node.get("minimum"), node.get("maximum")
        tests = ([f"value < {low}"] if low is not None else []) + ([f"value > {high}"] if high is not None else [])
        rule = quoted(f"must be from {low} to {high}" if high is not None else f"must be at least {low}")
        check = [f"if ({' || '.join(tests)}) {refuse.format(rule)};"] if tests else []
        return ["const double value = in.number();", *check, store("value")]

    def binding(self, path, default):
        if path in self.exceptions:
            self.used.add(path)
            return self.exceptions[path]
        return default

    def store(self, path, value, node):
        binding = self.binding(path, default=path.rsplit(".", 1)[-1])
        if binding is bindings.IGNORE:
            return f"static_cast<void>({value});" if value == "value" else ""
        if "(" in binding or " = " in binding:
            return binding + ";"
        if "enum" in node:
            field = f"out.{binding}"
            return f"{field} = std::remove_cvref_t<decltype({field})>::{value.capitalize()};"
        return f"store(out.{binding}, {value});"

    def condition(self, node, bits):
        """if/then/else: `if` asks for a member or for a pattern of one; then and else require and forbid."""
        test = node["if"]
        if set(test) == {"required"} and len(test["required"]) == 1:
            holds = f"(seen & {1 << bits[test['required'][0]]:#x}U) != 0"
        elif set(test) == {"properties"} and len(test["properties"]) == 1:
            (key, rule), = test["properties"].items()
            if set(rule) != {"pattern"} or key not in node["required"]:
                raise SchemaError(f"{self.schema.name}: `if` knows the pattern of a required member only")
            holds = self.generator.pattern(rule["pattern"]).replace("{}", f"out.{key}")
        else:
            raise SchemaError(f"{self.schema.name}: `if` of this form is not known")
        return [f"  if ({holds}) {{", *self.consequence(node.get("then", {}), bits), "  } else {",
                *self.consequence(node.get("else", {}), bits), "  }"]

    def consequence(self, node, bits):
        unknown = set(node) - {"properties", "required"}
        if unknown:
            raise SchemaError(f"{self.schema.name}: then/else know no {sorted(unknown)}")
        lines = []
        for key in node.get("required", []):
            lines.append(f'    if ((seen & {1 << bits[key]:#x}U) == 0) return in.reject({quoted(key)}, "is required here");')
        for key, rule in node.get("properties", {}).items():
            bit = f"{1 << bits[key]:#x}U"
            if rule is False:
                lines.append(f'    if ((seen & {bit}) != 0) return in.reject({quoted(key)}, "must be absent here");')
            elif rule == {"type": "null"}:
                lines.append(f'    if ((given & {bit}) != 0) return in.reject({quoted(key)}, "must be absent or null here");')
            elif set(rule) == {"type"} and key in node.get("required", []):
                lines.append(f'    if ((given & {bit}) == 0) return in.reject({quoted(key)}, "must not be null here");')
            else:
                raise SchemaError(f"{self.schema.name}: then/else of {key} is not known")
        return lines


def main():
    folder, output = sys.argv[1:]
    try:
        text = Generator(schema_model.load(folder)).run()
    except (SchemaError, regex_dfa.PatternError) as error:
        sys.exit(f"generate.py: {error}")
    pathlib.Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
