"""Fonts that a machine happens to have, and for each stretch of text the one that can draw it.

Debian's DejaVu or Liberation first; then what covers other scripts, where it is installed; at last the Latin font
that comes inside pillow, so that pictures can be drawn in an empty container too. Must not know what is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

SERIF = ("DejaVuSerif.ttf", "NotoSerif-Regular.ttf", "LiberationSerif-Regular.ttf", "Georgia.ttf", "georgia.ttf")
ITALIC = ("DejaVuSerif-Italic.ttf", "NotoSerif-Italic.ttf", "LiberationSerif-Italic.ttf", "Georgia Italic.ttf")
SANS = ("DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf", "Helvetica.ttc", "segoeui.ttf")
_OTHER_SCRIPTS = (
    "DejaVuSans.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "DroidSansFallbackFull.ttf",
    "NotoSansArabic-Regular.ttf",
    "NotoSansHebrew-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansThai-Regular.ttf",
    "NotoEmoji-Regular.ttf",
    "Symbola_hint.ttf",
    "Symbola.ttf",
    "FreeSans.ttf",
    "unifont.ttf",
    "Arial Unicode.ttf",
    "msyh.ttc",
    "seguisym.ttf",
)
_NO_SUCH_CHARACTER = "\U000ffffe"
"""A code point that no font has a shape for, so that its picture is the font's "missing" box."""

Missing = None
_MOST_STENCILS = 4_000


@dataclass(frozen=True, slots=True)
class Stencil:
    """The shape of a text, and where its corner is from the left end of its base line."""

    shape: Image.Image
    right: int
    down: int


class Fonts:
    """One size of one style, and what helps out where that style has no shape for a character.

    Args:
        names: files of the style, the best first; the system's font folders are searched.
        size: pixels.
    """

    def __init__(self, names: tuple[str, ...], size: int) -> None:
        self.size = size
        self.fonts = _available((*names, *_OTHER_SCRIPTS), size)
        self.main = self.fonts[0]
        self._known: dict[str, FreeTypeFont | None] = {}
        self._widths: dict[str, float] = {}
        self._stencils: dict[str, Stencil] = {}

    def runs(self, text: str) -> Iterator[tuple[FreeTypeFont | None, str]]:
        """The text cut into stretches of one font each; None where no font has the character."""
        start, font = 0, Missing
        for at, character in enumerate(text):
            here = self._font_of(character)
            if at > start and here is not font:
                yield font, text[start:at]
                start = at
            font = here
        if start < len(text):
            yield font, text[start:]

    def width(self, text: str) -> float:
        """How far the text reaches, in pixels; characters without a shape count as their code's name."""
        width = self._widths.get(text)
        if width is None:
            width = sum(self._width(font, run) for font, run in self.runs(text))
            self._widths[text] = width
        return width

    def stencil(self, text: str) -> Stencil:
        """The text's shape. Kept, since the frames of a run show nearly the same words again and again."""
        stencil = self._stencils.get(text)
        if stencil is None:
            if len(self._stencils) >= _MOST_STENCILS:
                self._stencils.clear()
            stencil = self._stencils[text] = self._cut(text)
        return stencil

    def _cut(self, text: str) -> Stencil:
        room = self.size
        image = Image.new("L", (math.ceil(self.width(text)) + 2 * room, 3 * room))
        draw, x = ImageDraw.Draw(image), float(room)
        for font, run in self.runs(text):
            shown, used = (names_of(run), self.main) if font is Missing else (run, font)
            draw.text((x, 2 * room), shown, 255, used, anchor="ls")
            x += used.getlength(shown)
        left, top, right, bottom = image.getbbox() or (0, 0, 1, 1)
        return Stencil(image.crop((left, top, right, bottom)), left - room, top - 2 * room)

    def _width(self, font: FreeTypeFont | None, run: str) -> float:
        return self.main.getlength(names_of(run)) if font is Missing else font.getlength(run)

    def _font_of(self, character: str) -> FreeTypeFont | None:
        if character not in self._known:
            able = (font for font in self.fonts if character.isspace() or _has(font, character))
            self._known[character] = next(able, Missing)
        return self._known[character]


def names_of(characters: str) -> str:
    """Characters that cannot be drawn, by their code points, such as "[4E2D]"."""
    return "".join(f"[{ord(character):04X}]" for character in characters)


def _has(font: FreeTypeFont, character: str) -> bool:
    """Whether the font draws the character as something else than its "missing" box."""
    shape, missing = font.getmask(character), _missing(font)
    return (shape.size, bytes(shape)) != missing


@lru_cache(maxsize=128)
def _missing(font: FreeTypeFont) -> tuple[tuple[int, int], bytes]:
    shape = font.getmask(_NO_SUCH_CHARACTER)
    return shape.size, bytes(shape)


@lru_cache(maxsize=32)
def _available(names: tuple[str, ...], size: int) -> tuple[FreeTypeFont, ...]:
    """Those of these fonts that are installed, and pillow's own."""
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(ImageFont.truetype(name, size))
        except OSError:
            continue
    own = ImageFont.load_default(size)
    return (*found, own) if isinstance(own, FreeTypeFont) else tuple(found)
