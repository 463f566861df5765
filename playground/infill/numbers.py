"""A schema's numbers as skeletons: sign, digits within bounds, point, digits. Must not know tokens or models."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from playground.infill.pieces import MAX_OPTIONS, Piece, SchemaError, Skeleton, Slot, joined

Bound: TypeAlias = tuple[float, bool] | None
"""A number and whether it is itself within; None where open."""


def number_options(schema: Mapping[str, Any], kind: str, path: str) -> list[Skeleton]:
    """The ways to write a number of this schema; at least one.

    Args:
        schema: may have bounds and `multipleOf`.
        kind: integer or number.
        path: where it is, for what is said.

    Raises:
        SchemaError: no number is within the bounds.
    """
    low, high = bounds_of(schema, path)
    if kind == "number":
        options = _decimals(low, high, path)
    else:
        options = _integers(schema, _inwards(low, up=True), _inwards(high, up=False), path)
    if not options:
        raise SchemaError(f"No {kind} is within the bounds at {path[:80]}; widen them.")
    return options


def _integers(schema: Mapping[str, Any], low: int | None, high: int | None, path: str) -> list[Skeleton]:
    step = schema.get("multipleOf", 1)
    if low is not None and high is not None and high - low < MAX_OPTIONS:
        return [(str(number),) for number in range(low, high + 1) if number % step == 0]
    return _signed(low, high, path)


def bounds_of(schema: Mapping[str, Any], path: str) -> tuple[Bound, Bound]:
    """Least and most of a number."""
    found: list[Bound] = []
    for name, beyond, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        given = [(schema[key], key == name) for key in (name, beyond) if key in schema]
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value, _ in given):
            raise SchemaError(f"{name} at {path[:80]} must be a number.")
        # Of two the narrower; of two that are equal the one that leaves itself out.
        found.append(max(given, key=lambda bound: (sign * bound[0], not bound[1])) if given else None)
    return found[0], found[1]


def _inwards(bound: Bound, *, up: bool) -> int | None:
    """The nearest whole number within."""
    if bound is None:
        return None
    value, itself = bound
    whole = math.ceil(value) if up else math.floor(value)
    return whole if itself or whole != value else whole + (1 if up else -1)


def _signed(low: int | None, high: int | None, path: str) -> list[Skeleton]:
    """Whole numbers within bounds as digits: one option without and one with a minus."""
    options: list[Skeleton] = []
    if high is None or high >= 0:
        options.append((_digits(path, max(low or 0, 0), high),))
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        options.append(tuple(joined(iter(("-", _digits(path, least, None if low is None else -low))))))
    return options


def _digits(path: str, low: int, high: int | None) -> Piece:
    return str(low) if low == high else Slot(path, "whole", low or None, high)


def _decimals(low: Bound, high: Bound, path: str) -> list[Skeleton]:
    """Whole numbers within bounds, and numbers with a point, of which the whole part is within."""
    least, most = _inwards(low, up=True), _inwards(high, up=False)
    options = [] if least is not None and most is not None and least > most else _signed(least, most, path)
    # -0.5 begins with -0: the two signs are apart.
    fraction = Slot(path, "fraction")
    if high is None or high[0] > 0:
        first = 0 if low is None or low[0] < 0 else math.floor(low[0])
        last = None if high is None else math.ceil(high[0]) - 1
        if last is None or first <= last:
            options.append((_digits(path, first, last), ".", fraction))
    if low is None or low[0] < 0:
        first = 0 if high is None or high[0] > 0 else math.floor(-high[0])
        last = None if low is None else math.ceil(-low[0]) - 1
        if last is None or first <= last:
            options.append(("-", _digits(path, first, last), ".", fraction))
    return [tuple(joined(iter(option))) for option in options]
