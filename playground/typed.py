"""Does a dataclass hold what it declares? For what comes from files and from elsewhere; must not know what it is."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Part = TypeVar("Part", bound="DataclassInstance")
_PLAIN: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float, int), "str": (str,), "dict": (dict,)}


def typed(part: Part) -> Part:
    """`part` itself, if its plain fields hold what they are declared to hold (True is no int here).

    Raises:
        TypeError: they do not.
        ValueError: a number is not finite, a text is not Unicode, or raw bytes are not hex.
    """
    for entry in fields(part):
        declared, _, optional = str(entry.type).partition(" | ")
        value = getattr(part, entry.name)
        allowed = _PLAIN.get(declared.partition("[")[0])
        if allowed is None or (optional and value is None):
            continue
        if type(value) not in allowed:
            raise TypeError(entry.name)
        if isinstance(value, str):
            _ = value.encode() if entry.name != "raw" else bytes.fromhex(value)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(entry.name)
    return part
