"""One check of a JSON Schema, as a program: a question in JSON on stdin, a list of faults in JSON on stdout.

A fault is where it is, a JSON path or null, and what does not do there.

It is a process of its own because a pattern can run for ever, and only a process can be ended.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

MANY = 10
PATH_CHARACTERS = 200
CPU_SECONDS = 2
"""A tenth of it is used before the check begins. It ends the process also when whoever asked has gone."""

MEMORY_BYTES = 512 * 1024 * 1024
DIALECT = "https://json-schema.org/draft/2020-12/schema"


Fault = tuple[str | None, str]


def faults(question: dict[str, Any]) -> list[Fault]:
    """What is wrong with the schema or, where there is one, with the content; nothing when all is well."""
    schema = question["schema"]
    outside = [reference for reference in _references(schema) if not reference.startswith("#")]
    if outside:
        return [(None, f"it refers to elsewhere: {reference[:80]}") for reference in outside[:MANY]]
    try:
        Draft202012Validator.check_schema(schema)
        _resolve(schema)
        if "content" not in question:
            return []
        validator = Draft202012Validator(schema, registry=Registry())  # an empty registry fetches nothing
        return [_told(error) for error, _ in zip(validator.iter_errors(question["content"]), range(MANY))]  # noqa: B905
    except SchemaError as error:
        path, why = _told(error)
        return [(path, f"{why}, so it is no JSON Schema 2020-12")]
    except Unresolvable as error:
        return [(None, f"it refers to what it does not have: {error.ref[:80]}")]


def _resolve(schema: Any) -> None:
    resource = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource("", resource).resolver()
    for reference in _references(schema):
        if reference.startswith("#"):
            resolver.lookup(reference)


def _told(error: ValidationError | SchemaError) -> Fault:
    return error.json_path[:PATH_CHARACTERS], f"{error.validator} does not hold"


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
                yield value
            elif key == "$schema" and value != DIALECT:
                yield str(value)
            yield from _references(value)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


if __name__ == "__main__":
    sys.setrecursionlimit(2000)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        print(json.dumps(faults(json.load(sys.stdin))))  # noqa: T201
    except RecursionError:
        print(json.dumps([(None, "it is nested too deeply")]))  # noqa: T201
