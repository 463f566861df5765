"""A JSON Schema as a skeleton: syntax that is locked, slots to be filled, choices to be made.

The skeleton of a value is a list of pieces. Text stands as it is. A `Slot` is a string's inside or a run of digits, of
which the length is open. A `Choice` is one of several skeletons: enumerated values, true or false, an optional field,
another item of an array. Whatever is put into them, the result parses, and has the schema's types. What a skeleton
cannot hold to (pattern, format, a string's length, a wide range of numbers) is left to validation. Must not know tokens
or models.

Skeleton in the canvas, values as masks: S3 (arXiv 2507.04504).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from playground.infill.numbers import number_options
from playground.infill.pieces import MAX_OPTIONS, Choice, Piece, SchemaError, Skeleton, Slot, joined, sketch

MAX_DEPTH = 12
"""Objects and arrays inside each other, references followed."""
MAX_FIELDS = 200
DEFAULT_ITEMS = 4
"""Most items of an array whose schema names no most."""


MAX_VALUES = 2000
"""Most values of a skeleton, all options counted: arrays inside arrays multiply."""
MAX_REPEATS = 2
"""Times that a reference is followed inside itself; what need not be there ends then."""


class _TooDeepError(SchemaError):
    """Left out where it may be."""


def skeleton_of(schema: object) -> Skeleton:
    """The skeleton of a schema's values.

    Raises:
        SchemaError: no schema, or one that asks for what a skeleton cannot be.
    """
    return tuple(_Maker(schema).value(schema, "$", 0))


def tools_schema(tools: object) -> dict[str, Any]:
    """The schema of one call of one of some tools in OpenAI's shape: `{"name": ..., "arguments": {...}}`.

    Raises:
        SchemaError: not a list of tools.
    """
    if not isinstance(tools, list) or not tools:
        raise SchemaError("The tools must be a list of at least one function; see OpenAI's tools.")
    calls = []
    for number, tool in enumerate(tools):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise SchemaError(f"Tool {number + 1} has no name; give each a function with a name and parameters.")
        parameters = function.get("parameters", {"type": "object", "properties": {}})
        fields = {"name": {"const": function["name"]}, "arguments": parameters}
        calls.append({"type": "object", "properties": fields, "required": ["name", "arguments"]})
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


_NOTES = frozenset(
    {"title", "description", "default", "examples", "$comment", "$schema", "$id", "$defs", "definitions"}
)
"""Keys that bind no value."""


class _Maker:
    def __init__(self, root: object) -> None:
        self._root = root
        self._fields = self._values = 0
        self._inside: list[str] = []

    def value(self, schema: object, path: str, depth: int) -> list[Piece]:
        """The pieces of one value."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise SchemaError(f"The schema has over {MAX_VALUES} values; give its arrays a lower maxItems.")
        if depth > MAX_DEPTH:
            raise _TooDeepError(f"The schema goes deeper than {MAX_DEPTH} levels at {path[:80]}; make it flatter.")
        outer = list(self._inside)
        try:
            schema = self._resolved(schema, path)
            if any(self._inside.count(reference) > MAX_REPEATS for reference in self._inside):
                raise _TooDeepError(f"The schema at {path[:80]} must hold itself without end; make a field optional.")
            return list(joined(self._kinds(schema, path, depth)))
        finally:
            self._inside = outer

    def _kinds(self, schema: Mapping[str, Any], path: str, depth: int) -> Iterator[Piece]:
        if "const" in schema:
            yield _text(schema["const"])
        elif "enum" in schema:
            yield self._enum(schema["enum"], path)
        elif options := schema.get("anyOf") or schema.get("oneOf"):
            yield from self._any_of(schema, options, path, depth)
        else:
            yield from self._typed(schema, path, depth)

    def _resolved(self, schema: object, path: str) -> Mapping[str, Any]:
        """The schema itself, behind its references and with a single `allOf` merged in."""
        for _ in range(MAX_DEPTH):
            if schema is True:
                schema = {"type": "string"}
            if not isinstance(schema, dict):
                raise SchemaError(
                    f'The schema at {path[:80]} is not an object; write one such as {{"type": "string"}}.'
                )
            if isinstance(reference := schema.get("$ref"), str):
                self._inside.append(reference)
                beside = {key: value for key, value in schema.items() if key not in ("$ref", "$defs", "definitions")}
                found = self._pointed(reference, path)
                schema = {"allOf": [found, beside]} if beside.keys() - _NOTES else found
            elif parts := schema.get("allOf"):
                schema = self._merged(schema, parts, path)
            else:
                return schema
        raise SchemaError(f"The references at {path[:80]} go in a circle; end them.")

    def _pointed(self, reference: str, path: str) -> object:
        if not reference.startswith("#"):
            raise SchemaError(
                f"The reference {reference[:60]!r} at {path[:80]} is to another document; put it into $defs."
            )
        found: Any = self._root
        for step in reference.lstrip("#").strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if name:
                found = found.get(name) if isinstance(found, dict) else None
        if found is None:
            raise SchemaError(f"The reference {reference[:60]!r} at {path[:80]} leads nowhere; check $defs.")
        return found

    def _merged(self, schema: Mapping[str, Any], parts: object, path: str) -> dict[str, Any]:
        if not isinstance(parts, list):
            raise SchemaError(f"allOf at {path[:80]} must be a list.")
        whole: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for part in parts:
            for key, value in self._resolved(part, path).items():
                if key == "properties":
                    whole["properties"] = {**whole.get("properties", {}), **value}
                elif key == "required":
                    whole["required"] = [*whole.get("required", []), *value]
                elif whole.setdefault(key, value) != value:
                    raise SchemaError(f"allOf at {path[:80]} disagrees about {key[:40]!r}; write one schema.")
        return whole

    # --- kinds of value -------------------------------------------------------------------------

    def _enum(self, values: object, path: str) -> Piece:
        if not isinstance(values, list) or not values:
            raise SchemaError(f"The enum at {path[:80]} is empty; list its values.")
        if len(values) > MAX_OPTIONS:
            raise SchemaError(
                f"The enum at {path[:80]} has {len(values)} values; at most {MAX_OPTIONS} can be compared."
            )
        texts = list(dict.fromkeys(_text(value) for value in values))
        return texts[0] if len(texts) == 1 else Choice(path, tuple((text,) for text in texts), tuple(texts))

    def _any_of(self, schema: Mapping[str, Any], options: object, path: str, depth: int) -> list[Piece]:
        if not isinstance(options, list) or not 1 <= len(options) <= MAX_OPTIONS:
            raise SchemaError(f"anyOf at {path[:80]} must be a list of 1 to {MAX_OPTIONS} schemas.")
        beside = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
        made: list[Skeleton] = []
        too_deep: SchemaError | None = None
        for option in options:
            try:
                both = {"allOf": [option, beside]} if beside.keys() - _NOTES else option
                made.append(tuple(self.value(both, path, depth + 1)))
            except _TooDeepError as error:
                too_deep = error
        if not made:
            assert too_deep is not None
            raise too_deep
        made = list(dict.fromkeys(made))
        return list(made[0]) if len(made) == 1 else [Choice(path, tuple(made), tuple(map(sketch, made)))]

    def _typed(self, schema: Mapping[str, Any], path: str, depth: int) -> Iterator[Piece]:
        kind = schema.get("type")
        if isinstance(kind, list):
            yield from self._any_of({}, [{**schema, "type": one} for one in kind], path, depth)
            return
        if kind is None:
            kind = next((k for k, key in (("object", "properties"), ("array", "items")) if key in schema), "string")
        if kind == "object":
            yield from self._object(schema, path, depth)
        elif kind == "array":
            yield from self._array(schema, path, depth)
        elif kind == "string":
            least, most = (
                _count(schema[key], key, path) if key in schema else None for key in ("minLength", "maxLength")
            )
            yield from ('"', '"') if most == 0 else ('"', Slot(path, "string", least, most), '"')
        elif kind in ("integer", "number"):
            options = number_options(schema, str(kind), path)
            yield from options[0] if len(options) == 1 else [Choice(path, tuple(options), tuple(map(sketch, options)))]
        elif kind == "boolean":
            yield Choice(path, (("true",), ("false",)), ("true", "false"))
        elif kind == "null":
            yield "null"
        else:
            raise SchemaError(f"The type {str(kind)[:40]!r} at {path[:80]} is unknown; JSON has seven.")

    def _object(self, schema: Mapping[str, Any], path: str, depth: int) -> Iterator[Piece]:
        fields, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(fields, dict) or not isinstance(required, list):
            raise SchemaError(f"properties at {path[:80]} must be an object and required a list.")
        if missing := [name for name in required if name not in fields]:
            fields = {**fields, **{str(name): {"type": "string"} for name in missing}}
        self._fields += len(fields)
        if self._fields > MAX_FIELDS:
            raise SchemaError(f"The schema has over {MAX_FIELDS} fields; ask for fewer at once.")
        yield "{"
        # Fields that must be there come first, so that every comma has its place.
        started = False
        for name in sorted(fields, key=lambda name: name not in required):
            try:
                inside = self.value(fields[name], f"{path}.{name}", depth + 1)
            except _TooDeepError:
                if name in required:
                    raise
                continue
            field: Skeleton = tuple(joined(iter((f"{', ' if started else ''}{_text(name)}: ", *inside))))
            if name in required or not started:
                yield from field  # an object in which nothing must be there has its first field
            else:
                yield Choice(f"{path}.{name}", (field, ()), ("there", "left out"))
            started = True
        yield "}"

    def _array(self, schema: Mapping[str, Any], path: str, depth: int) -> Iterator[Piece]:
        least = _count(schema.get("minItems", 0), "minItems", path)
        most = _count(schema.get("maxItems", max(least, DEFAULT_ITEMS)), "maxItems", path)
        if most < least:
            raise SchemaError(f"maxItems is below minItems at {path[:80]}; swap them.")
        most = min(most, max(least, MAX_OPTIONS))
        prefix = schema.get("prefixItems", [])
        items = schema.get("items", True)
        if items is False or not isinstance(prefix, list):
            most = min(most, len(prefix)) if isinstance(prefix, list) else 0

        made: list[Skeleton] = []
        for number in range(most):
            inside = prefix[number] if number < len(prefix) else items
            try:
                pieces = self.value(inside, f"{path}[{number}]", depth + 1)
            except _TooDeepError:
                if number < least:
                    raise
                break
            made.append(tuple(joined(iter((", " if number else "", *pieces)))))
        yield "["
        for certain in made[:least]:
            yield from certain
        # What follows is inside out: another item and perhaps more, or the end.
        rest: Skeleton = ()
        for number in range(len(made) - 1, least - 1, -1):
            rest = (Choice(f"{path}[{number}]", ((*made[number], *rest), ()), ("another", "no more")),)
        yield from rest
        yield "]"


def _text(value: object) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def _count(value: object, name: str, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_FIELDS:
        raise SchemaError(f"{name} at {path[:80]} must be a whole number from 0 to {MAX_FIELDS}.")
    return value


__all__ = ["Choice", "Piece", "SchemaError", "Skeleton", "Slot", "skeleton_of", "tools_schema"]
