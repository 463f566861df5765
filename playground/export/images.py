"""Image files of a run: a PNG of one step, a GIF of all. Sizes and times are chosen here; `picture` draws.

A long run is thinned out evenly, so that the GIF plays within ten seconds and stays a few megabytes at most.
"""

from __future__ import annotations

import io

from PIL import Image

from playground.export.flow import Page
from playground.export.looks import Stills
from playground.export.picture import Painter
from playground.trace import Trace

FRAME_SECONDS = 0.1
"""How long a step is shown, as in the viewer at 1×."""
LONGEST_PLAY = 10.0
"""Seconds in which even a long run is through."""
FIRST_SECONDS, LAST_SECONDS = 0.8, 3.0
MOST_FRAMES = 100
MOST_PIXELS = 40_000_000
"""Of all frames together, which is what a GIF costs to make and to show."""
GIF_WIDTH = 720
_COLOURS = 48
_SAMPLES = 6


class ImageError(ValueError):
    """A picture that cannot be made; its text is one sentence."""


def trace_png(trace: Trace, step: int | None = None, *, dark: bool = False) -> bytes:
    """The canvas after `step` frames, or at the end, in twice the usual resolution.

    Raises:
        ImageError: there is no such step.
    """
    k = len(trace.frames) if step is None else step
    if not 0 <= k <= len(trace.frames):
        raise ImageError(f"There is no step {k}; this run has steps 0 to {len(trace.frames)}.")
    painter = Painter(trace, scale=2, dark=dark)
    file = io.BytesIO()
    painter.paint(painter.lay_out(Stills(trace).at(k)), k).save(file, "PNG", optimize=True)
    return file.getvalue()


def trace_gif(trace: Trace, *, dark: bool = False) -> bytes:
    """The run from its first canvas to its last, over and over."""
    painter = Painter(trace, width=GIF_WIDTH, scale=1, dark=dark)
    last = len(trace.frames)
    # A few steps tell about how high a picture is, and so how many there may be.
    width, tall = painter.size(_height(_pages(painter, trace, thinned(last, _SAMPLES))))
    pages = _pages(painter, trace, thinned(last, min(MOST_FRAMES, MOST_PIXELS // (width * tall))))
    steps, height = list(pages), _height(pages)
    palette = _palette([painter.paint(pages[k], k, height) for k in _spread(steps, _SAMPLES)])
    frames = (painter.paint(pages[k], k, height).quantize(palette=palette, dither=Image.Dither.NONE) for k in steps)
    file = io.BytesIO()
    next(frames).save(
        file, "GIF", save_all=True, append_images=frames, duration=durations(len(steps)), loop=0, optimize=False
    )
    return file.getvalue()


def thinned(steps: int, most: int) -> list[int]:
    """At most so many of the steps 0 to `steps`, the first and the last among them, evenly spread."""
    count = min(steps + 1, max(2, most))
    return [round(at * steps / (count - 1)) for at in range(count)] if count > 1 else [0]


def durations(frames: int) -> list[int]:
    """Milliseconds of each frame; whole hundredths of a second, which is how a GIF counts."""
    if frames == 1:
        return [round(1000 * LAST_SECONDS)]
    each = 10 * max(2, round(100 * min(FRAME_SECONDS, LONGEST_PLAY / frames)))
    return [round(1000 * FIRST_SECONDS), *[each] * (frames - 2), round(1000 * LAST_SECONDS)]


def _pages(painter: Painter, trace: Trace, steps: list[int]) -> dict[int, Page]:
    """Where everything stands at these steps."""
    stills = Stills(trace)
    return {k: painter.lay_out(stills.at(k)) for k in steps}


def _height(pages: dict[int, Page]) -> float:
    """Room for the highest."""
    return max(page.height for page in pages.values())


def _spread(steps: list[int], most: int) -> list[int]:
    return [steps[at] for at in thinned(len(steps) - 1, most)]


def _palette(samples: list[Image.Image]) -> Image.Image:
    """Colours for all frames, taken from some of them set side by side."""
    width, height = samples[0].size
    sheet = Image.new("RGB", (width, height * len(samples)))
    for at, sample in enumerate(samples):
        sheet.paste(sample, (0, at * height))
    return sheet.quantize(_COLOURS, dither=Image.Dither.NONE)
