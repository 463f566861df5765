"""A run as a stream of viewer values: JSON lines that only grow, at most thirty a second.

Gradio sends only what a string gained, so the text so far is yielded again and again. Also keeps which run belongs to
which open page. Must not know components.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Protocol

from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.engine.state import ModelState
from playground.trace import Event, Outcome, to_line
from playground.ui.components import control_line, plain, turn_line

YIELD_SECONDS = 1 / 30
"""Shortest time between two values; faster ones would only make the browser lag behind."""
STATUS_SECONDS = 0.5
"""How often a waiting run's place is looked up."""


class Stoppable(Protocol):
    """A run, or several that belong together."""

    def cancel(self) -> None:
        """Stop, keeping what there is."""
        ...


class Sessions:
    """The run each open page is showing, so that Stop stops that one and no other."""

    def __init__(self) -> None:
        self._runs: dict[str, Stoppable] = {}
        self._lock = threading.Lock()

    def shown(self, session: str) -> Stoppable | None:
        """What page `session` shows, if it is still going."""
        with self._lock:
            return self._runs.get(session)

    def start(self, session: str, run: Stoppable) -> None:
        """`run` is now what page `session` shows; a run it showed before is stopped."""
        with self._lock:
            before = self._runs.get(session)
            self._runs[session] = run
        if before is not None:
            before.cancel()

    def stop(self, session: str) -> None:
        """Stop what page `session` shows, if it is still going."""
        with self._lock:
            run = self._runs.get(session)
        if run is not None:
            run.cancel()

    def forget(self, session: str, run: Stoppable) -> bool:
        """`run` is over; False where the page shows another one by now."""
        with self._lock:
            mine = self._runs.get(session) is run
            if mine:
                del self._runs[session]
            return mine


def stream(run: Run, engine: Engine) -> Iterator[str]:
    """The viewer's values for a run: places in the queue while it waits, then its trace as it grows."""
    text, said = turn_line(), ""
    pacer = _Pacer(run)
    while True:
        events = pacer.next()
        if events:
            text += plain("".join(to_line(event) for event in events))
            yield text
            if isinstance(events[-1], Outcome):
                return
        elif not pacer.started and run.cancelled.is_set() and _loading(run, engine):
            # The worker, busy with loading, will end the run later; the page need not wait for that.
            yield text + control_line(status="Stopped before it began.")
            return
        elif not pacer.started and (sentence := waiting_sentence(run, engine)) != said:
            said = sentence
            text += control_line(status=sentence)
            yield text


class _Pacer:
    """Hands out a run's events as they come, but at most one batch every `YIELD_SECONDS`."""

    def __init__(self, run: Run) -> None:
        self._run, self._cursor, self._last = run, 0, 0.0

    @property
    def started(self) -> bool:
        """The header has been handed out."""
        return self._cursor > 0

    def next(self) -> list[Event]:
        """The next events; empty when none came for `STATUS_SECONDS`."""
        events = self._run.next_events(self._cursor, STATUS_SECONDS)
        while events and not isinstance(events[-1], Outcome):
            left = self._last + YIELD_SECONDS - time.monotonic()
            if left <= 0:
                break
            events += self._run.next_events(self._cursor + len(events), left)
        self._cursor += len(events)
        self._last = time.monotonic()
        return events


def waiting_sentence(run: Run, engine: Engine) -> str:
    """What a run that has not started is waiting for."""
    if _loading(run, engine):
        seconds = engine.status(run.request.model).seconds
        return f"Loading the model ({seconds:.0f} s so far). The run starts by itself."
    place = run.place
    return f"Waiting: place {place} in the queue." if place else "Starting."


def _loading(run: Run, engine: Engine) -> bool:
    return engine.status(run.request.model).state is ModelState.LOADING
