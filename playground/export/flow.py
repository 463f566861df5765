"""Where the pieces of a canvas stand in a picture: words on lines, lines under each other, boxes around masks.

A word is what no line may break inside, however many tokens it is made of. From right to left the whole is mirrored;
inside a box the font's own shaping does the rest. Must not know colours or steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from playground.export.fonts import Fonts
from playground.export.looks import Look, Piece

# Scripts that break between any two characters: kana, Han, Hangul.
_BREAKS = re.compile("([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff])|( +)")
_SIGNS = {"newline": "⏎", "tab": "→"}


@dataclass(slots=True)
class Box:
    """Something to draw: `kind` as in `Piece`, plus "end"; `x` and `y` are its left end and its line's base."""

    look: Look
    kind: str
    text: str
    width: float
    breaks_before: bool = False
    ends_line: bool = False
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class Type:
    """Fonts of a canvas and the distance between its lines, in pixels."""

    text: Fonts
    guess: Fonts
    small: Fonts
    line: int


@dataclass(slots=True)
class Page:
    """Boxes in place, and how high they are together."""

    boxes: list[Box] = field(default_factory=list)
    height: float = 0.0


def flow(looks: Sequence[Look], kind: Type, width: float, *, right_to_left: bool = False) -> Page:
    """Put a canvas on lines of this width."""
    page, x, y = Page(), 0.0, 0.0
    for word in _words(box for look in looks for box in _boxes(look, kind)):
        spaces = word[0].kind == "space"
        if x > 0 and not spaces and x + sum(box.width for box in word) > width:
            x, y = 0.0, y + kind.line
        for box in word:
            # A word longer than a line is broken between its tokens; a space at a line's end hangs over it.
            if x > 0 and not spaces and x + box.width > width:
                x, y = 0.0, y + kind.line
            box.x, box.y = x, y
            x = min(width, x + box.width) if spaces else x + box.width
            page.boxes.append(box)
        if word[-1].ends_line:
            x, y = 0.0, y + kind.line
    page.height = y + kind.line
    if right_to_left:
        for box in page.boxes:
            box.x = width - box.x - box.width
    return page


def _words(boxes: Iterable[Box]) -> Iterator[list[Box]]:
    word: list[Box] = []
    for box in boxes:
        if word and (box.breaks_before or word[-1].ends_line or word[-1].kind == "space"):
            yield word
            word = []
        word.append(box)
    if word:
        yield word


def _boxes(look: Look, kind: Type) -> Iterator[Box]:
    """A position's pieces as boxes. A position without any (the rest of a character) has none."""
    if look.kind == "end":
        yield Box(look, "end", "end", kind.small.width("end") + 1.5 * kind.small.size, breaks_before=True)
        return
    for piece in look.pieces:
        yield from _of_piece(look, piece, kind)


def _of_piece(look: Look, piece: Piece, kind: Type) -> Iterator[Box]:
    if piece.kind == "guess":
        inside = max(kind.guess.width(piece.text), 0.6 * kind.guess.size)
        yield Box(look, "guess", piece.text, inside + kind.guess.size, breaks_before=True)
    elif piece.kind in _SIGNS:
        sign = _SIGNS[piece.kind]
        wide = kind.small.width(sign) + 0.3 * kind.small.size
        ends = piece.kind == "newline"
        yield Box(look, piece.kind, sign, max(wide, 0.0 if ends else 2 * kind.text.size), ends_line=ends)
    elif piece.kind == "chip":
        yield Box(look, "chip", piece.text, kind.small.width(piece.text) + 0.8 * kind.small.size)
    elif piece.kind == "space":
        yield Box(look, "space", piece.text, kind.text.width(piece.text), breaks_before=True)
    else:
        yield from _of_text(look, piece.text, kind.text)


def _of_text(look: Look, text: str, fonts: Fonts) -> Iterator[Box]:
    """Stretches of text between the places where a line may break."""
    for part in filter(None, _BREAKS.split(text)):
        breaks = bool(_BREAKS.fullmatch(part))
        spaces = part.isspace()
        yield Box(look, "space" if spaces else "text", part, fonts.width(part), breaks_before=breaks)
