"""A run live in the terminal: masks that resolve in place, the newest tokens marked, a line of figures below.

A mask is as wide as the model's guess for it, so that lines hardly move while the text appears. `Canvas` turns the
trace so far into text and knows no terminal; `WatchView` draws it.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.style import Style
from rich.text import Text

from playground.cli.terminal import PlainConsole, inert, is_terminal, put, say
from playground.cli.views import counted, figures
from playground.trace import Cell, Event, Frame, Guess, Header, Kind, Outcome, Result, apply

# Reverse and bold are seen without colours too.
FRESH = Style(color="green", reverse=True, bold=True)
GUESS = Style(dim=True, italic=True)
DIM = Style(dim=True)
MASK = "░"
UNKNOWN = f" {MASK * 4}"
"""A mask for which there is no guess yet: about a word."""
SURE = 0.3
"""From this probability on a guess is spelled out."""
STOP = "∎"


class Canvas:
    """What stands where after the newest frame."""

    def __init__(self, header: Header) -> None:
        self._stops = frozenset(header.stop_ids)
        self._cells = [Cell()] * header.length
        self._guesses: dict[int, Guess] = {}
        self._step = 0

    def take(self, frame: Frame) -> None:
        """Carry out a frame."""
        apply(self._cells, frame)
        self._step = frame.step
        self._guesses.update({guess.position: guess for guess in frame.guesses})
        if any(change.kind in {Kind.INSERT, Kind.DELETE} for change in frame.changes):
            self._guesses = {guess.position: guess for guess in frame.guesses}

    def render(self, *, fresh: bool = True) -> Text:
        """The canvas; `fresh` marks what the newest frame changed."""
        text = Text()
        for at, (cell, piece) in enumerate(zip(self._cells, _pieces(self._cells), strict=True)):
            if cell.token_id is None:
                _append_mask(text, self._guesses.get(at))
            elif cell.token_id in self._stops:
                text.append(STOP if cell.kind is not Kind.FORCE else "", DIM)
            else:
                words = inert(piece).expandtabs(4)
                bare = words.lstrip(" ")
                text.append(words[: len(words) - len(bare)])
                text.append(bare, FRESH if fresh and cell.step == self._step else None)
        return text


def _pieces(cells: list[Cell]) -> Iterator[str]:
    """What each cell shows. A character whose bytes are spread over several tokens shows with the last of them."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    for cell in cells:
        if cell.raw is None:
            decoder.reset()
            yield cell.text
        else:
            yield decoder.decode(bytes.fromhex(cell.raw))


def _append_mask(text: Text, guess: Guess | None) -> None:
    words = inert(guess.text) if guess else ""
    bare = words.strip()
    if guess is None or not bare:
        text.append(UNKNOWN if guess is None else MASK, DIM)
        return
    text.append(words[: len(words) - len(words.lstrip())].replace("\n", " "))
    if guess.probability >= SURE:
        text.append(bare.replace("\n", " "), GUESS)
    else:
        text.append(MASK * max(1, cell_len(bare)), DIM)


class _Picture:
    """Canvas and figures, cut to the terminal's height around what changed last."""

    def __init__(self) -> None:
        self.canvas = Text()
        self.status = Text()
        self.whole = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = list(self.canvas.wrap(console, options.max_width))
        room = max(1, console.height - 3)
        if not self.whole and len(lines) > room:
            last = max((at for at, line in enumerate(lines) if any(s.style == FRESH for s in line.spans)), default=0)
            start = min(max(0, last - room // 2), len(lines) - room)
            lines = lines[start : start + room]
        yield from lines
        yield Text()
        yield self.status


class WatchView:
    """Draws on stdout where that is a terminal; else on stderr, and the text goes to stdout."""

    def __init__(self) -> None:
        self._on_stdout = is_terminal(sys.stdout)
        self._console = PlainConsole(stderr=not self._on_stdout)
        self._picture = _Picture()
        # Redrawn by hand: a thread that draws would race with Ctrl+C for the lines below the canvas.
        self._live = Live(
            self._picture, console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._header: Header | None = None
        self._canvas: Canvas | None = None
        self._committed = 0
        self._seconds = 0.0

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def wait(self, sentence: str) -> None:
        """See `View`."""
        self._draw(sentence)

    def show(self, event: Event) -> None:
        """See `View`."""
        if isinstance(event, Header):
            self._header, self._canvas = event, Canvas(event)
            self._draw("Reading the prompt")
        elif isinstance(event, Frame):
            self._take(event)
        else:
            self._end(event)

    def _take(self, frame: Frame) -> None:
        assert self._canvas is not None
        self._canvas.take(frame)
        self._committed += sum(change.kind is Kind.COMMIT for change in frame.changes)
        self._seconds += frame.model_seconds
        each, speed = self._committed / frame.nfe, self._committed / max(self._seconds, 1e-9)
        self._draw(
            f"Step {frame.step} · {counted(frame.nfe, 'forward')} · {each:.2f} tokens a forward · "
            f"{speed:.1f} tokens/s · {counted(frame.masks_left, 'mask')} left"
        )

    def _end(self, outcome: Outcome) -> None:
        self._picture.whole = True
        known = self._header is not None and self._header.prompt_tokens > 0
        self._draw(figures(self._header, outcome) if self._header and known else "", fresh=False)
        self._live.stop()
        if not self._on_stdout and outcome.text:
            put(f"{inert(outcome.text)}\n")
        if outcome.result is not Result.FINISHED:
            say(outcome.message)

    def _draw(self, status: str, *, fresh: bool = True) -> None:
        if self._canvas is not None:
            self._picture.canvas = self._canvas.render(fresh=fresh)
        self._picture.status = Text(status, DIM)
        self._live.refresh()
