"""Pictures: sizes, times, what they show, and that nothing a model writes can spoil one."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from playground.export import fonts
from playground.export.flow import Type, flow
from playground.export.fonts import ITALIC, SANS, SERIF, Fonts
from playground.export.images import (
    LAST_SECONDS,
    LONGEST_PLAY,
    MOST_FRAMES,
    ImageError,
    durations,
    thinned,
    trace_gif,
    trace_png,
)
from playground.export.looks import Look, Piece, Stills
from playground.labs import examples
from playground.trace import Change, Kind, Trace
from tests.export.traces import hostile_trace, traces
from tests.samples import sample_trace


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def type_of(size: int = 20) -> Type:
    return Type(Fonts(SERIF, size), Fonts(ITALIC, size), Fonts(SANS, size), 2 * size)


# --- PNG ----------------------------------------------------------------------------------------


def test_a_png_shows_the_step_that_was_asked_for() -> None:
    trace = examples.load()[0].trace
    pictures = {k: opened(trace_png(trace, k)) for k in (0, 10, 11, len(trace.frames))}
    assert {picture.width for picture in pictures.values()} == {1520}
    assert len({picture.tobytes() for picture in pictures.values()}) == 4
    assert trace_png(trace) == trace_png(trace, len(trace.frames))
    assert trace_png(trace, 10) == trace_png(trace, 10)


def test_dark_is_dark() -> None:
    trace = examples.load()[1].trace
    corner = {dark: opened(trace_png(trace, dark=dark)).getpixel((2, 2)) for dark in (False, True)}
    assert sum(corner[False]) > 600  # type: ignore[arg-type]
    assert sum(corner[True]) < 120  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [-1, 5])
def test_a_step_that_there_is_not_is_refused(step: int) -> None:
    with pytest.raises(ImageError, match="this run has steps 0 to 4"):
        trace_png(sample_trace(), step)


@settings(deadline=None, max_examples=40)
@given(traces(), st.data())
def test_any_trace_can_be_drawn(trace: Trace, data: st.DataObject) -> None:
    picture = opened(trace_png(trace, data.draw(st.integers(0, len(trace.frames)))))
    assert picture.width == 1520
    assert picture.height < 20_000


def test_hostile_texts_are_drawn() -> None:
    assert opened(trace_gif(hostile_trace())).n_frames == 5  # type: ignore[attr-defined]


def test_a_machine_without_fonts_still_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an empty container: pillow's own font is all there is."""

    real = fonts.ImageFont.truetype

    def none(file: str | io.BytesIO, size: int, **options: Any) -> Any:
        if isinstance(file, str):
            raise OSError(f"no {file}")
        return real(file, size, **options)

    fonts._available.cache_clear()
    monkeypatch.setattr(fonts.ImageFont, "truetype", none)
    try:
        trace = sample_trace("x", "Ünïcode 你好")
        assert Fonts(SERIF, 20).fonts[0].getname()[0] == "Aileron"
        assert opened(trace_png(trace)).width == 1520
    finally:
        fonts._available.cache_clear()


# --- GIF ----------------------------------------------------------------------------------------


def test_a_gif_goes_through_the_run_and_lingers_at_its_end() -> None:
    trace = examples.load()[0].trace
    image = Image.open(io.BytesIO(trace_gif(trace)))
    assert image.n_frames == len(trace.frames) + 1  # type: ignore[attr-defined]
    assert image.info["loop"] == 0
    times = []
    for at in range(image.n_frames):  # type: ignore[attr-defined]
        image.seek(at)
        times.append(image.info["duration"])
    assert times[-1] == 1000 * LAST_SECONDS
    assert set(times[1:-1]) == {100}


def test_every_frame_of_a_gif_is_that_step_and_no_other() -> None:
    """Frames are stored as what differs from the one before; taken together they must be the pictures."""
    trace = examples.load()[3].trace
    image = Image.open(io.BytesIO(trace_gif(trace)))
    shown = []
    for at in range(image.n_frames):  # type: ignore[attr-defined]
        image.seek(at)
        shown.append(image.convert("RGB"))
    assert len({frame.tobytes() for frame in shown}) == len(trace.frames) + 1
    alone = Image.open(io.BytesIO(trace_gif(Trace(trace.header, trace.frames[:1]))))
    alone.seek(0)
    first = alone.convert("RGB").crop((0, 60, 720, 200))
    difference = ImageChops.difference(first, shown[0].crop((0, 60, 720, 200))).getextrema()
    assert max(high for _, high in difference) < 24  # type: ignore[misc,operator]


def test_a_long_run_is_thinned_out() -> None:
    length = 300
    trace = sample_trace("x", "long", frames=length, length=length)
    image = Image.open(io.BytesIO(trace_gif(trace)))
    assert image.n_frames <= MOST_FRAMES  # type: ignore[attr-defined]


@given(st.integers(0, 5000), st.integers(2, 200))
def test_thinning_keeps_both_ends_and_the_order(steps: int, most: int) -> None:
    kept = thinned(steps, most)
    assert (kept[0], kept[-1]) == (0, steps)
    assert kept == sorted(set(kept))
    assert len(kept) == min(steps + 1, most)
    gaps = [after - before for before, after in zip(kept, kept[1:], strict=False)]
    assert not gaps or max(gaps) - min(gaps) <= 1


@given(st.integers(1, MOST_FRAMES))
def test_times_are_what_a_gif_can_say(frames: int) -> None:
    times = durations(frames)
    assert len(times) == frames
    assert all(time % 10 == 0 and time >= 20 for time in times)
    assert sum(times[1:-1]) <= 1000 * LONGEST_PLAY


# --- layout -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(traces(), st.booleans())
def test_nothing_stands_outside_or_on_something_else(trace: Trace, right_to_left: bool) -> None:
    """Boxes of a line are side by side and inside, but for words wider than the line and spaces at its end."""
    width = 400.0
    page = flow(Stills(trace).at(len(trace.frames)), type_of(), width, right_to_left=right_to_left)
    lines: dict[float, list[tuple[float, float]]] = {}
    for box in page.boxes:
        if box.kind != "space":
            lines.setdefault(box.y, []).append((box.x, box.x + box.width))
            assert box.x >= -0.01 or box.width > width
            assert box.x + box.width <= width + 0.01 or box.width > width
        assert 0 <= box.y < page.height
    for spans in lines.values():
        ordered = sorted(spans)
        assert all(left[1] <= right[0] + 0.01 for left, right in zip(ordered, ordered[1:], strict=False))


def test_a_word_of_several_tokens_is_not_broken() -> None:
    kind = type_of()
    tokens = ["un", "mask", "ing"]
    looks = [
        Look("text", (*([Piece("space", " ")] if at % 3 == 0 else []), Piece("text", tokens[at % 3])))
        for at in range(30)
    ]
    width = kind.text.width("unmasking unmasking unm")
    boxes = [box for box in flow(looks, kind, width).boxes if box.kind == "text"]
    lines = [tuple(boxes[at + part].y for part in range(3)) for at in range(0, 30, 3)]
    assert all(len(set(line)) == 1 for line in lines)
    assert len(set(lines)) == 5


def test_right_to_left_is_the_mirror_image() -> None:
    looks = [Look("text", (Piece("space", " "), Piece("text", word))) for word in ("one", "three", "eleven")]
    ltr = flow(looks, type_of(), 500)
    rtl = flow(looks, type_of(), 500, right_to_left=True)
    for one, other in zip(ltr.boxes, rtl.boxes, strict=True):
        assert other.x == pytest.approx(500 - one.x - one.width)


def test_hebrew_makes_a_picture_from_right_to_left() -> None:
    plain = sample_trace("x", "hello", frames=1, length=2)
    (frame,) = plain.frames
    hebrew = tuple(Change(at, Kind.COMMIT, 9, word, 0.9) for at, word in enumerate(("שלום", " עולם")))
    picture = opened(trace_png(Trace(plain.header, [replace(frame, changes=hebrew)])))
    canvas = picture.convert("L").crop((0, 150, picture.width, picture.height - 140))
    dark = canvas.point(lambda value: 255 if value < 128 else 0).getbbox()
    assert dark is not None
    assert dark[0] > picture.width / 2


def test_characters_without_a_shape_are_named() -> None:
    style = Fonts(SERIF, 20)
    parts = list(style.runs("a\U0010fffdb"))
    assert [text for font, text in parts if font is None] == ["\U0010fffd"]
    assert style.width("\U0010fffd") == pytest.approx(style.main.getlength("[10FFFD]"))
