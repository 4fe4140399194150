"""Writes a C++ source that holds files as text: embed.py ROOT OUT FILE..."""
import pathlib
import sys


def literal(text):
    # A literal may have 64 KiB at most everywhere; adjacent ones are joined.
    parts = [text[i:i + 12000] for i in range(0, len(text), 12000)] or [""]
    return " ".join(f'R"windlass({part})windlass"' for part in parts)


root, out, files = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
lines = ['#include "conformance/runner/embedded.h"', "", "namespace windlass::conformance {", "",
         "const std::map<std::string, std::string>& embedded_files() {",
         "  static const std::map<std::string, std::string> files = {"]
for file in sorted(files):
    path = pathlib.Path(file)
    lines.append(f'      {{"{path.relative_to(root)}", {literal(path.read_text(encoding="utf-8"))}}},')
lines += ["  };", "  return files;", "}", "", "}  // namespace windlass::conformance", ""]
out.write_text("\n".join(lines), encoding="utf-8")
