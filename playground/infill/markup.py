"""Blanks in a text: `[[ ]]` of any length, `[[8]]` of eight tokens, `[[4-12]]` of four to twelve.

Whatever else stands in double brackets is text. What is outside the blanks is kept byte for byte. Must not know tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from playground.start import MAX_BLANK

AUTO_LENGTHS = (1, 2, 3, 4, 6, 8, 12)
"""Lengths that are tried where none is given, in tokens."""
MOST_LENGTHS = 8
"""Most lengths that are tried for one blank; a longer range is thinned out evenly."""
_BLANK = re.compile(r"\[\[[ \t]*(?:(\d{1,6})[ \t]*(?:-[ \t]*(\d{1,6})[ \t]*)?)?\]\]")


class MarkupError(ValueError):
    """Blanks that make no sense; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Blank:
    """A gap of `low` to `high` tokens, both included; both None where the length is to be found."""

    low: int | None = None
    high: int | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths to try, ascending; one where it is fixed."""
        if self.low is None or self.high is None:
            return AUTO_LENGTHS
        count = self.high - self.low + 1
        if count <= MOST_LENGTHS:
            return tuple(range(self.low, self.high + 1))
        step = (count - 1) / (MOST_LENGTHS - 1)
        return tuple(dict.fromkeys(self.low + round(i * step) for i in range(MOST_LENGTHS)))

    @property
    def fixed(self) -> bool:
        """Whether there is only one length to try."""
        return len(self.lengths) == 1

    def __str__(self) -> str:
        if self.low is None:
            return "[[ ]]"
        return f"[[{self.low}]]" if self.low == self.high else f"[[{self.low}-{self.high}]]"


Piece: TypeAlias = str | Blank


@dataclass(frozen=True, slots=True)
class Template:
    """Texts and blanks in order; no text is empty and no two texts are neighbours."""

    pieces: tuple[Piece, ...]

    @property
    def blanks(self) -> tuple[Blank, ...]:
        """The blanks, from left to right."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Blank))

    def filled(self, texts: Sequence[str]) -> str:
        """The whole text with one text for each blank."""
        rest = iter(texts)
        return "".join(piece if isinstance(piece, str) else next(rest) for piece in self.pieces)

    def __str__(self) -> str:
        return "".join(map(str, self.pieces))


def parse(text: str) -> Template:
    """Read a text with blanks.

    Raises:
        MarkupError: there is no blank, or one is longer than any canvas or ends before it begins.
    """
    template = Template(tuple(_pieces(text)))
    if not template.blanks:
        raise MarkupError("There is no blank in the text; select what is to be filled in, or write [[ ]] or [[8]].")
    return template


def _pieces(text: str) -> Iterator[Piece]:
    end = 0
    for found in _BLANK.finditer(text):
        if found.start() > end:
            yield text[end : found.start()]
        yield _blank(found)
        end = found.end()
    if end < len(text):
        yield text[end:]


def _blank(found: re.Match[str]) -> Blank:
    if found[1] is None:
        return Blank()
    low = int(found[1])
    high = int(found[2]) if found[2] is not None else low
    if high < low:
        raise MarkupError(f"The blank {found[0]} ends before it begins; write [[{high}-{low}]].")
    if high > MAX_BLANK:
        raise MarkupError(f"The blank {found[0]} is over {MAX_BLANK:,} tokens; make it shorter.")
    return Blank(low, high)


def cut(text: str, spans: Sequence[tuple[int, int, Blank]]) -> Template:
    """Put blanks in place of stretches of a text (start, end, blank), in characters, half-open.

    Raises:
        MarkupError: a stretch is outside the text or overlaps another.
    """
    pieces: list[Piece] = []
    at = 0
    for start, end, blank in sorted(spans, key=lambda span: span[:2]):
        if not 0 <= start <= end <= len(text):
            raise MarkupError(f"The blank {start}:{end} is outside the text, which has {len(text):,} characters.")
        if start < at:
            raise MarkupError(f"The blank {start}:{end} overlaps the one before it; part them.")
        if start > at:
            pieces.append(text[at:start])
        pieces.append(blank)
        at = end
    if at < len(text):
        pieces.append(text[at:])
    return Template(tuple(pieces))
