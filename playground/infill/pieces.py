"""What skeletons are made of; see `scaffold`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MAX_OPTIONS = 64
"""Most enumerated values, and the widest range of whole numbers that is taken for an enumeration."""


class SchemaError(ValueError):
    """A schema that cannot be made into a skeleton; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Slot:
    """An open stretch: what stands between quotes (`string`), a whole number's digits (`whole`), or the digits behind a
    point (`fraction`). `low` and `high` bound the number that the digits are, or a string's length in characters."""

    path: str
    kind: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several skeletons. `shown` names each for reports."""

    path: str
    options: tuple[tuple[Piece, ...], ...]
    shown: tuple[str, ...]


Piece: TypeAlias = str | Slot | Choice
Skeleton: TypeAlias = tuple[Piece, ...]


def joined(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Neighbouring texts as one."""
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if text:
            yield text
        text = ""
        yield piece
    if text:
        yield text


def sketch(pieces: Skeleton) -> str:
    """A skeleton in short, for reports."""
    return "".join(piece if isinstance(piece, str) else "…" for piece in pieces)[:60] or "nothing"
