"""Whether a JSON text holds to a schema, by jsonschema, and where not. Must not know models.

A schema may come from anyone: it is never followed to another document, and its patterns get a time limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import regex
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from playground.infill.pieces import SchemaError
from playground.infill.scaffold import tools_schema

PATTERN_SECONDS = 0.2
"""For one pattern on one value; a pattern can take longer than anyone waits."""
_NAMED = ("properties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("const", "enum", "default", "examples")
_UNFIT = ("patternProperties", "$dynamicRef", "$recursiveRef")


class Check:
    """A schema, itself checked.

    Args:
        schema: a JSON Schema (draft 2020-12 where it names none), or a list of tools in OpenAI's shape.

    Raises:
        SchemaError: neither.

    Attributes:
        schema: the JSON Schema.
    """

    def __init__(self, schema: object) -> None:
        self.schema = tools_schema(schema) if isinstance(schema, list) else schema
        self._validator = _validator_of(self.schema)

    def problems(self, text: str) -> Iterator[str]:
        """What the schema does not allow, each with its place. Raises `SchemaError` where it cannot be checked."""
        for error in self._errors(text):
            yield f"{place(error.absolute_path)}: {error.message[:200]}"

    def wrong(self, text: str) -> set[str]:
        """Places of values that the schema does not allow, those inside options that all fail among them."""
        return {place(path) for error in self._errors(text) for path in _paths(error)}

    def _errors(self, text: str) -> list[Any]:
        try:
            return list(self._validator.iter_errors(json.loads(text)))
        except Unresolvable as error:
            raise SchemaError(
                f"The reference {error.ref[:60]!r} leads nowhere here; put what it means into $defs."
            ) from None
        except RecursionError:
            raise SchemaError("The schema's references go in a circle; end them.") from None


def _validator_of(schema: object) -> Validator:
    if not isinstance(schema, dict):
        raise SchemaError('The schema must be a JSON object, such as {"type": "object"}, or a list of tools.')
    kind: Any = validator_for(schema, jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        _refuse_unfit(schema)
    except jsonschema.SchemaError as error:
        raise SchemaError(f"The schema is not valid at {place(error.absolute_path)}: {error.message[:160]}.") from None
    except RecursionError:
        raise SchemaError("The schema goes too deep to be read; make it flatter.") from None
    timed: Any = extend(kind, {"pattern": _pattern})  # type: ignore[no-untyped-call]
    made: Validator = timed(schema, format_checker=kind.FORMAT_CHECKER, registry=EMPTY_REGISTRY)
    return made


def _refuse_unfit(schema: object) -> None:
    """Raises `SchemaError` for keywords that no skeleton follows and whose check could take for ever."""
    if isinstance(schema, list):
        for value in schema:
            _refuse_unfit(value)
    if not isinstance(schema, dict):
        return
    for name, value in schema.items():
        if name in _UNFIT:
            raise SchemaError(f"{name} cannot be made into a skeleton; name the fields in properties.")
        if name in _NAMED and isinstance(value, dict):
            _refuse_unfit(list(value.values()))
        elif name not in _VALUES:
            _refuse_unfit(value)


def _pattern(validator: Any, pattern: str, value: object, schema: object) -> Iterator[jsonschema.ValidationError]:
    """`pattern`, in bounded time."""
    del schema
    if not validator.is_type(value, "string"):
        return
    try:
        if not regex.search(pattern, str(value), timeout=PATTERN_SECONDS):
            yield jsonschema.ValidationError(f"{str(value)[:60]!r} does not match {pattern[:60]!r}")
    except TimeoutError:
        yield jsonschema.ValidationError(f"matching {pattern[:60]!r} takes too long")
    except regex.error:
        yield jsonschema.ValidationError(f"{pattern[:60]!r} is no pattern")


def _paths(error: Any) -> Iterator[Any]:
    yield error.absolute_path
    for inner in error.context or ():
        yield from _paths(inner)


def place(steps: Any) -> str:
    """A path such as `$.people[0].name`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


__all__ = ["Check", "place"]
