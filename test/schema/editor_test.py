# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The JSON Schema of the language says of every spec of the tree what the compiler's reader says: it takes what is read, and
refuses unknown keys, options, statements and words. Usage: editor_test.py TL_LLC SOURCE"""
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: Python has no {missing.name} (Debian: python3-jsonschema, python3-yaml)")
    sys.exit(77)

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# What a schema can see: keys, choices, statements and options that there are not, or that are missing.
STRUCTURE = {"TL0110", "TL0111", "TL0116", "TL0401", "TL0402", "TL0403"}


def joined(schema):
    """The schema with each reference replaced by what it refers to, which may be around it, and what fails soonest in front."""
    made = {}

    def go(node):
        if isinstance(node, list):
            return [go(n) for n in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name not in made:
                made[name] = {}
                made[name].update(go(schema["definitions"][name]))
            return made[name]
        return {key: go(node[key]) for key in sorted(node, key=lambda key: key in ("properties", "items", "anyOf", "allOf"))}

    return go({key: value for key, value in schema.items() if key != "definitions"})


def any_of(validator, choices, value, _):
    """As jsonschema's, which looks for every mistake of every choice; here it is whether there is one."""
    for choice in choices:
        if next(validator.descend(value, choice), None) is None:
            return
    yield jsonschema.ValidationError("none of the choices")


def documents(text):
    """The documents of a spec; None where YAML's typing reads it otherwise than specs are read."""
    try:
        return [d for d in yaml.load_all(text, Loader=LOADER) if d is not None]
    except (yaml.YAMLError, ValueError):
        return None


def main():
    tl_llc, source = sys.argv[1], pathlib.Path(sys.argv[2])
    schema = json.loads(subprocess.run([tl_llc, "--emit=schema"], capture_output=True, check=True).stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.validators.extend(jsonschema.Draft7Validator, {"anyOf": any_of})(joined(schema))
    failures = taken = refused = 0
    folders = ["kernels", "examples", "test"]
    for path in sorted(p for folder in folders for p in (source / folder).rglob("*.yaml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if not re.search(r"^(kernel|chain|macros)\s*:", text, re.M):
            continue  # a launch file, or no spec at all
        found = documents(text)
        if found is None:
            continue
        wrong = next((e for d in found for e in validator.iter_errors(d)), None)
        if not wrong and "bad" not in path.parts:  # whatever the reader says, it is not about what a schema sees
            taken += 1
            continue
        said = subprocess.run([tl_llc, "--emit=ast", "--diagnostics=json", "-o", "/dev/null", path], capture_output=True)
        errors = [d["code"] for d in json.loads(said.stderr) if d["severity"] == "error"]
        if not errors and wrong:
            print(f"{path}: is read, but the schema refuses it: {'/'.join(map(str, wrong.absolute_path))}")
            failures += 1
        elif set(errors) & STRUCTURE and not wrong:
            print(f"{path}: {sorted(set(errors) & STRUCTURE)}, but the schema takes it")
            failures += 1
        taken += not errors
        refused += bool(wrong)
    print(f"{taken} specs taken, {refused} refused, {failures} failures")
    return failures > 0 or taken < 100 or refused < 20


sys.exit(main())
