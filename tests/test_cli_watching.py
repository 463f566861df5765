"""The live canvas: what it shows for a trace, and that nothing in a trace can reach the terminal as more than text."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.text import Text

from playground.cli import watching
from playground.cli.terminal import PlainConsole
from playground.cli.watching import FRESH, MASK, STOP, UNKNOWN, Canvas, WatchView
from playground.trace import Change, Frame, Guess, Header, Kind, Outcome, Result, Timings
from tests.samples import sample_trace


def header(length: int) -> Header:
    """A header for a canvas of `length`; its stop id is 2."""
    return sample_trace(frames=0, length=length).header


def frame(step: int, *changes: Change, guesses: tuple[Guess, ...] = (), masks_left: int = 0) -> Frame:
    """A frame with these changes."""
    return Frame(step, 0, step, masks_left, changes, 0.5, 0.5, 0.1, guesses=guesses)


def commit(position: int, text: str, token_id: int = 9, raw: str | None = None, kind: Kind = Kind.COMMIT) -> Change:
    """A token at a position."""
    return Change(position, kind, token_id, text, 0.5, raw)


def canvas(length: int, *frames: Frame) -> Canvas:
    """A canvas after these frames."""
    shown = Canvas(header(length))
    for each in frames:
        shown.take(each)
    return shown


def fresh_parts(text: Text) -> list[str]:
    """What is marked as new."""
    return [text.plain[span.start : span.end] for span in text.spans if span.style == FRESH]


def test_an_untouched_canvas_is_masks() -> None:
    assert canvas(3).render().plain == UNKNOWN * 3


def test_the_newest_tokens_are_marked_without_their_spaces() -> None:
    shown = canvas(2, frame(1, commit(0, "In")), frame(2, commit(1, "  the")))
    assert shown.render().plain == "In  the"
    assert fresh_parts(shown.render()) == ["the"]
    assert fresh_parts(shown.render(fresh=False)) == []


@pytest.mark.parametrize(
    ("guess", "probability", "shown"),
    [(" the", 0.1, f" {MASK * 3}"), (" the", 0.9, " the"), ("日本", 0.1, MASK * 4), ("\n", 0.9, MASK), ("", 0.9, MASK)],
)
def test_a_mask_is_as_wide_as_its_guess(guess: str, probability: float, shown: str) -> None:
    assert canvas(1, frame(1, guesses=(Guess(0, guess, probability),))).render().plain == shown


def test_a_remasked_position_is_a_mask_again() -> None:
    shown = canvas(1, frame(1, commit(0, "x")), frame(2, Change(0, Kind.REMASK, None, "")))
    assert shown.render().plain == UNKNOWN


def test_insertions_and_deletions_move_what_follows() -> None:
    shown = canvas(2, frame(1, commit(0, "a"), commit(1, "b")), frame(2, commit(1, "X", kind=Kind.INSERT)))
    assert shown.render().plain == "aXb"
    shown.take(frame(3, Change(0, Kind.DELETE, None, "")))
    assert shown.render().plain == "Xb"


def test_a_character_over_two_tokens_is_never_a_replacement_character() -> None:
    halves = "é".encode()
    first, second = commit(0, "", raw=halves[:1].hex()), commit(1, "", raw=halves[1:].hex())
    assert canvas(2, frame(1, first)).render().plain == UNKNOWN
    assert canvas(2, frame(1, first, second)).render().plain == "é"
    assert canvas(3, frame(1, first, commit(1, "x"), commit(2, "", raw=second.raw))).render().plain == "x"


def test_the_end_of_a_text_is_marked_once() -> None:
    shown = canvas(3, frame(1, commit(0, "a"), commit(1, "<|im_end|>", 2), commit(2, "<|im_end|>", 2, kind=Kind.FORCE)))
    assert shown.render().plain == f"a{STOP}"


def test_nothing_a_model_writes_is_obeyed() -> None:
    words = ("\x1b[2J", "[bold red]x[/]", ":smiley:", "\x9b5n", "\u202e", "\t")
    changes = [commit(at, word) for at, word in enumerate(words)]
    text = canvas(7, frame(1, *changes, guesses=(Guess(6, "\x1b]0;x\x07", 0.9),))).render()
    buffer = io.StringIO()
    PlainConsole(file=buffer, force_terminal=True, color_system=None, width=120).print(text)
    printed = buffer.getvalue()
    assert "␛[2J" in printed
    assert "[bold red]x[/]" in printed
    assert ":smiley:" in printed
    for bad in ("\x1b[2J", "\x9b", "\u202e", "\x07", "\x1b]"):
        assert bad not in printed


def test_a_canvas_taller_than_the_terminal_is_cut_around_the_newest_token() -> None:
    picture = watching._Picture()
    lines = [f"line{at}" for at in range(50)]
    picture.canvas = Text("\n".join(lines))
    picture.canvas.stylize(FRESH, picture.canvas.plain.index("line40"), picture.canvas.plain.index("line40") + 6)
    picture.status = Text("status")
    buffer = io.StringIO()
    console = PlainConsole(file=buffer, width=40, height=10)
    console.print(picture)
    assert "line40" in buffer.getvalue()
    assert "status" in buffer.getvalue()
    assert "line0\n" not in buffer.getvalue()
    picture.whole = True
    console.print(picture)
    assert "line0\n" in buffer.getvalue()


def test_a_run_that_never_started_leaves_only_its_message(capfd: pytest.CaptureFixture[str]) -> None:
    unstarted = replace(header(4), prompt_tokens=0, blocks=())
    with WatchView() as view:
        view.wait("Loading the model (1 s)")
        view.show(unstarted)
        view.show(Outcome(Result.FAILED, "", "It cannot be loaded.", 0, 0, Timings()))
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.endswith("It cannot be loaded.\n")
