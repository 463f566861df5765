"""A run as viewer values: what it waits for, how it begins, and where the viewer finds what follows.

What follows does not pass through Gradio, whose page compares a component's whole value with the one before at every
change: that took 18 seconds of 512 positions in 128 steps. The viewer reads the lines by itself, each once (see
`playground.api.events`). Also keeps which run belongs to which open page. Must not know components.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Protocol

from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.engine.state import ModelState
from playground.trace import Outcome, to_line
from playground.ui.components import control_line, plain, turn_line

STATUS_SECONDS = 0.5
"""How often a waiting run's place is looked up, and whether the page is still there."""


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
    """The viewer's values for a run, each of which extends the one before, until the run has ended.

    Places in the queue while it waits, then its first lines and, unless those are all, a control line that says where
    the viewer finds the others. The last value comes again every `STATUS_SECONDS`, so that a page that has gone is
    noticed.
    """
    text, said = turn_line(), ""
    while not (events := run.next_events(0, STATUS_SECONDS)):
        if run.cancelled.is_set() and _loading(run, engine):
            # The worker, busy with loading, will end the run later; the page need not wait for that.
            yield text + control_line(status="Stopped before it began.")
            return
        if (sentence := waiting_sentence(run, engine)) != said:
            said = sentence
            text += control_line(status=sentence)
            yield text
    text += plain("".join(map(to_line, events)))
    if not isinstance(events[-1], Outcome):
        text += control_line(stream=run.id, after=len(events))
    yield text
    while run.wait(STATUS_SECONDS) is None:
        yield text


def waiting_sentence(run: Run, engine: Engine) -> str:
    """What a run that has not started is waiting for."""
    if _loading(run, engine):
        seconds = engine.status(run.request.model).seconds
        return f"Loading the model ({seconds:.0f} s so far). The run starts by itself."
    place = run.place
    return f"Waiting: place {place} in the queue." if place else "Starting."


def _loading(run: Run, engine: Engine) -> bool:
    return engine.status(run.request.model).state is ModelState.LOADING
