"""Three ways to show a run; here the two that a program can read: its text, and its trace as JSON lines.

Results go to stdout; what is going on goes to stderr, and only where someone watches or asked for it.
"""

from __future__ import annotations

import re
import sys
from types import TracebackType
from typing import Protocol, Self

from rich.status import Status
from rich.text import Text

from playground.cli.terminal import PlainConsole, inert, is_terminal, put, say
from playground.trace import Event, Frame, Header, Outcome, Result, to_line

# JSON leaves these as they are, and a terminal obeys some of them.
_CONTROLS = re.compile("[\x7f-\x9f]")


class View(Protocol):
    """What a run is shown in. Entered before the first call, left after the last."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def wait(self, sentence: str) -> None:
        """The run has not started; `sentence` says what it waits for."""
        ...

    def show(self, event: Event) -> None:
        """Header, then frames, then the outcome."""
        ...


class Progress:
    """A line on stderr while a run goes on, and its figures after it; silent where nobody watches."""

    def __init__(self, *, verbose: bool, spin: bool = True) -> None:
        watched = is_terminal(sys.stderr)
        self._told = verbose or watched
        console = PlainConsole(stderr=True)
        self._status = Status(Text("Starting"), console=console) if spin and watched else None

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()

    def now(self, sentence: str) -> None:
        """What is going on."""
        if self._status is not None:
            self._status.update(Text(sentence))

    def end(self, header: Header | None, outcome: Outcome) -> None:
        """Say why the run ended early, if it did, and where its time went."""
        self.stop()
        if outcome.result is not Result.FINISHED:
            say(outcome.message)
        if self._told and header is not None and header.prompt_tokens:
            say(figures(header, outcome))


class TextView:
    """The text on stdout, at the end; nothing else."""

    def __init__(self, verbose: bool = False) -> None:
        self._progress = Progress(verbose=verbose)
        self._header: Header | None = None

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def wait(self, sentence: str) -> None:
        """See `View`."""
        self._progress.now(sentence)

    def show(self, event: Event) -> None:
        """See `View`."""
        if isinstance(event, Header):
            self._header = event
        elif isinstance(event, Frame):
            self._progress.now(f"Step {event.step}: {counted(event.masks_left, 'mask')} left")
        else:
            self._progress.stop()
            if event.text:
                put(f"{inert(event.text)}\n")
            self._progress.end(self._header, event)


class JsonView:
    """Every event on stdout as it comes, one JSON line each; `Trace.from_lines` reads them back."""

    def __init__(self, verbose: bool = False) -> None:
        self._progress = Progress(verbose=verbose, spin=not is_terminal(sys.stdout))
        self._header: Header | None = None

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def wait(self, sentence: str) -> None:
        """See `View`."""
        self._progress.now(sentence)

    def show(self, event: Event) -> None:
        """See `View`."""
        put(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", to_line(event)))
        if isinstance(event, Header):
            self._header = event
        elif isinstance(event, Frame):
            self._progress.now(f"Step {event.step}: {counted(event.masks_left, 'mask')} left")
        else:
            self._progress.end(self._header, event)


def figures(header: Header, outcome: Outcome) -> str:
    """A run's figures in a line, such as "32 tokens in 30 forwards (1.07 a forward), 6.1 s: …"."""
    timings = outcome.timings
    each = outcome.tokens / outcome.forwards if outcome.forwards else 0.0
    return (
        f"{counted(outcome.tokens, 'token')} in {counted(outcome.forwards, 'forward')} ({each:.2f} a forward), "
        f"{timings.total:.1f} s: "
        f"waiting and loading {timings.queue:.1f}, prompt {timings.prefill:.1f}, model {timings.model:.1f}. "
        f"Seed {header.seed}."
    )


def counted(number: int, noun: str) -> str:
    """Such as "1 mask" or "2 masks"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
