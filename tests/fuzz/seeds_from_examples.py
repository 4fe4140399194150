"""Writes the golden vectors of schema/examples as inputs of fuzz_decode: seeds_from_examples.py <examples> <folder>.

The first byte of an input says kind and revision (see Input in fuzz_decode.cc), the rest is the message.
"""

import json
import pathlib
import sys


def message(example):
    if "text" in example:
        return example["text"].encode()
    if "hex" in example:
        return bytes.fromhex(example["hex"])
    text = json.dumps(example["frame"], ensure_ascii=False).encode()
    if example.get("kind") != "binary":
        return text
    return len(text).to_bytes(4, "big") + text + example["attachment"].encode()


def main():
    examples, folder = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(examples.glob("*/*.json")):
        example = json.loads(path.read_text(encoding="utf-8"))
        mode = (example.get("kind") == "binary") + 2 * (2 - example["revision"])
        (folder / f"{path.parent.name}.{path.stem}").write_bytes(bytes([mode]) + message(example))


if __name__ == "__main__":
    main()
