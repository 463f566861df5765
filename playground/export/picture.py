"""A canvas as a picture, drawn with pillow: prompt, positions as the viewer shows them, where in the run that is.

Masks are boxes with the model's guess inside and a bar for how sure it is. Every mark shows without colour too. Must
not know what the pictures are for (see `images`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from playground.export.flow import Box, Page, Type, flow
from playground.export.fonts import ITALIC, SANS, SERIF, Fonts
from playground.export.looks import Look
from playground.trace import Trace

_PROMPT_LINES = 3
_MARGIN, _GAP = 30, 18
_ARABIC_OR_HEBREW = {"R", "AL"}


@dataclass(frozen=True, slots=True)
class Colours:
    """Of the viewer's stylesheet (static/player.css)."""

    card: str
    ink: str
    soft: str
    ghost: str
    edge: str
    mask: str
    level: str
    accent: str
    tint: str


LIGHT = Colours("#fdfcfa", "#1f1c19", "#655e55", "#6e6458", "#d3ccbf", "#ece7dd", "#8d8272", "#2e4bd0", "#e6ebff")
DARK = Colours("#191817", "#eeeae2", "#a9a196", "#a0978a", "#45413c", "#302d2a", "#877e72", "#a9b9ff", "#262c4d")


class Painter:
    """Draws the steps of one trace, all in one size.

    Args:
        trace: the run.
        width: of the picture, in CSS pixels.
        scale: real pixels to a CSS pixel.
        dark: light writing on a dark ground.
    """

    def __init__(self, trace: Trace, *, width: int = 760, scale: int = 2, dark: bool = False) -> None:
        self._trace, self._scale = trace, scale
        self._colours = DARK if dark else LIGHT
        self._width = width * scale
        size = _size_of(trace.header.length)
        self._type = Type(
            Fonts(SERIF, size * scale),
            Fonts(ITALIC, round(0.86 * size) * scale),
            Fonts(SANS, round(0.62 * size) * scale),
            round(1.85 * size) * scale,
        )
        self._plain = Fonts(SANS, 13 * scale)
        self._right_to_left = _is_right_to_left(trace)
        self._prompt = self._lines_of(trace.header.prompt)
        self._top = (_MARGIN + (len(self._prompt) + 1) * 20 + _GAP) * scale

    def lay_out(self, looks: Sequence[Look]) -> Page:
        """Where everything of a step stands."""
        inside = self._width - 2 * _MARGIN * self._scale
        return flow(looks, self._type, inside, right_to_left=self._right_to_left)

    def size(self, canvas_height: float) -> tuple[int, int]:
        """Of a picture whose canvas is so high, in real pixels."""
        return self._width, round(self._top + canvas_height + (_GAP + 24 + _MARGIN) * self._scale)

    def paint(self, page: Page, k: int, height: float | None = None) -> Image.Image:
        """The picture of step k; `height` keeps room for the canvas of other steps."""
        canvas_height = page.height if height is None else height
        image = Image.new("RGB", self.size(canvas_height), self._colours.card)
        draw = ImageDraw.Draw(image)
        self._paint_heading(draw)
        for box in page.boxes:
            self._paint_box(draw, box)
        self._paint_progress(draw, k, round(self._top + canvas_height + _GAP * self._scale))
        return image

    # --- around the canvas ----------------------------------------------------------------------

    def _lines_of(self, text: str) -> list[str]:
        """The prompt on a few lines."""
        most, lines, line = self._width - 2 * _MARGIN * self._scale, list[str](), ""
        for word in re.findall(r"\S+\s*|\s+", " ".join(text.split())):
            if line and self._plain.width((line + word).rstrip()) > most:
                lines.append(line.rstrip())
                line = ""
            line += word
        lines.append(line.rstrip())
        lines = [_fitted(line, self._plain, most) for line in lines]
        if len(lines) > _PROMPT_LINES:
            lines = [*lines[: _PROMPT_LINES - 1], _fitted(f"{lines[_PROMPT_LINES - 1]} …", self._plain, most)]
        return lines

    def _paint_heading(self, draw: ImageDraw.ImageDraw) -> None:
        x, y = _MARGIN * self._scale, _MARGIN * self._scale
        header = self._trace.header
        facts = f"{header.model_name or header.model}, seed {header.seed}"
        inside = self._width - 2 * x
        for text, colour in (
            (_fitted(facts, self._plain, inside), self._colours.soft),
            *((line, self._colours.ink) for line in self._prompt),
        ):
            write(draw, (x, y + 14 * self._scale), text, self._plain, colour)
            y += 20 * self._scale

    def _paint_progress(self, draw: ImageDraw.ImageDraw, k: int, y: int) -> None:
        """A bar as long as the run, filled up to this step, and the same in words."""
        left, right = _MARGIN * self._scale, self._width - _MARGIN * self._scale
        frames = self._trace.frames
        share = k / len(frames) if frames else 1.0
        thick = 3 * self._scale
        draw.rectangle((left, y, right, y + thick), self._colours.mask)
        draw.rectangle((left, y, left + share * (right - left), y + thick), self._colours.accent)
        header = self._trace.header
        masks = frames[k - 1].masks_left if k else header.length - len(header.start)
        said = f"step {k} of {len(frames)} · {masks} {'mask' if masks == 1 else 'masks'} left"
        write(draw, (left, y + 20 * self._scale), said, self._plain, self._colours.soft)

    # --- one box --------------------------------------------------------------------------------

    def _paint_box(self, draw: ImageDraw.ImageDraw, box: Box) -> None:
        x = _MARGIN * self._scale + box.x
        base = self._top + box.y + 0.66 * self._type.line
        if box.kind == "guess":
            self._paint_mask(draw, box, x, base)
        elif box.kind == "end":
            self._paint_chip(draw, box, x, base, round_ends=True)
        elif box.kind == "chip":
            self._paint_chip(draw, box, x, base, round_ends=False)
        elif box.kind in ("newline", "tab"):
            write(draw, (x, base), box.text, self._type.small, self._colours.ghost)
        elif box.kind == "text":
            self._paint_text(draw, box, x, base)

    def _paint_mask(self, draw: ImageDraw.ImageDraw, box: Box, x: float, base: float) -> None:
        colours, scale, size = self._colours, self._scale, self._type.guess.size
        left, right = x + 0.1 * size, x + box.width - 0.1 * size
        top, bottom = base - 1.08 * size, base + 0.42 * size
        draw.rounded_rectangle((left, top, right, bottom), 4 * scale, colours.mask)
        if "back" in box.look.marks:
            _dashes(draw, (left, top, right, bottom), colours.accent, scale)
        inside = self._type.guess.width(box.text)
        write(draw, (x + (box.width - inside) / 2, base), box.text, self._type.guess, colours.ghost)
        if box.look.sure > 0:
            room = right - left - 6 * scale
            start = left + 3 * scale
            level = (start, bottom - 2 * scale, start + box.look.sure * room, bottom - scale)
            draw.rectangle(level, colours.level)

    def _paint_chip(self, draw: ImageDraw.ImageDraw, box: Box, x: float, base: float, *, round_ends: bool) -> None:
        colours, size = self._colours, self._type.small.size
        frame = (x + 0.25 * size, base - 1.15 * size, x + box.width - 0.15 * size, base + 0.35 * size)
        fresh = "fresh" in box.look.marks
        radius = 0.75 * size if round_ends else 0.25 * size
        fill, edge = (colours.tint, colours.accent) if fresh else (None, colours.edge)
        draw.rounded_rectangle(frame, radius, fill, edge, self._scale)
        inside = self._type.small.width(box.text)
        write(draw, (x + (box.width - inside) / 2, base - 0.05 * size), box.text, self._type.small, colours.soft)

    def _paint_text(self, draw: ImageDraw.ImageDraw, box: Box, x: float, base: float) -> None:
        colours, scale, size = self._colours, self._scale, self._type.text.size
        marks, right = box.look.marks, x + box.width
        top, bottom = base - size, base + 0.34 * size
        ink = colours.ghost if box.look.kind in ("padding", "noise") else colours.ink
        if box.look.kind == "noise":
            draw.rectangle((x, top, right, bottom), colours.mask)
        if "fresh" in marks and box.look.kind == "text":
            ink = colours.accent
            draw.rounded_rectangle((x, top, right, bottom), 3 * scale, colours.tint)
            if "unsure" not in marks:
                draw.rectangle((x, bottom - 2 * scale, right - 1, bottom), colours.accent)
            if "revised" in marks:
                draw.rectangle((x, top, right - 1, top + 2 * scale), colours.accent)
        if "unsure" in marks and box.look.kind == "text":
            for at in range(round(x), round(right) - scale, 4 * scale):
                draw.ellipse((at, bottom - 2 * scale, at + 2 * scale - 1, bottom - 1), ink)
        if "pinned" in marks:
            draw.rectangle((x, bottom - 2 * scale, right - 1, bottom), colours.level)
        write(draw, (x, base), box.text, self._type.text, ink)


def write(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, fonts: Fonts, colour: str) -> None:
    """Text on a base line, each character in a font that has it, else by its code point."""
    x, base = at
    stencil = fonts.stencil(text)
    draw.bitmap((round(x) + stencil.right, round(base) + stencil.down), stencil.shape, colour)


def _fitted(text: str, fonts: Fonts, most: float) -> str:
    """The text, cut where it would be too wide."""
    if fonts.width(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fonts.width(text[:middle] + "…") <= most else (low, middle - 1)
    return f"{text[:low]}…"


def _dashes(draw: ImageDraw.ImageDraw, frame: tuple[float, ...], colour: str, scale: int) -> None:
    left, top, right, bottom = frame
    for at in range(round(left), round(right), 6 * scale):
        until = min(at + 3 * scale, right)
        draw.line((at, top, until, top), colour, scale)
        draw.line((at, bottom, until, bottom), colour, scale)
    for at in range(round(top), round(bottom), 6 * scale):
        until = min(at + 3 * scale, bottom)
        draw.line((left, at, left, until), colour, scale)
        draw.line((right, at, right, until), colour, scale)


def _size_of(length: int) -> int:
    """Long canvases are set smaller, as in the viewer."""
    if length <= 160:
        return 20
    return 17 if length <= 512 else 14


def _is_right_to_left(trace: Trace) -> bool:
    """Whether most letters of the whole run run from right to left; so is it then at every step."""
    changes = [*trace.header.start, *(change for frame in trace.frames for change in frame.changes)]
    letters = "".join(change.text for change in changes)
    kinds = [unicodedata.bidirectional(letter) for letter in letters if letter.isalpha()]
    return 2 * sum(kind in _ARABIC_OR_HEBREW for kind in kinds) > len(kinds)
