"""One run as everyone else sees it: where it stands, its events so far, and a way to stop it.

Written by the worker, read by any number of threads; a reader that goes away changes nothing. Must not know models.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from playground.request import GenerationRequest
from playground.trace import Event, Frame, Header, Outcome, Trace


class Run:
    """A submitted request. Its id is unguessable: whoever holds it may watch and stop the run.

    Args:
        request: what was asked.
        seed: the seed that will be used.
        visitor: whose run it is; empty for the command line and the Python door.
        place: tells how many runs are ahead of this one.
        wake: called when the run may go on after a pause.
        logged: hand it to the log once it has ended; not so a try among many, see `Engine.keep`.
    """

    def __init__(
        self,
        request: GenerationRequest,
        *,
        seed: int,
        visitor: str = "",
        place: Callable[[Run], int],
        wake: Callable[[], None] = lambda: None,
        logged: bool = True,
    ) -> None:
        self.id = secrets.token_hex(12)
        self.request, self.seed, self.visitor, self.logged = request, seed, visitor, logged
        self.created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.submitted_at = time.monotonic()
        self.cancelled = threading.Event()
        self.cancel_reason = ""
        self._place, self._wake = place, wake
        self._paused_at: float | None = None
        self._paused_before = 0.0
        self._trace: Trace | None = None
        self._changed = threading.Condition()
        self._told: list[Callable[[], None]] = []

    # --- for readers ----------------------------------------------------------------------------

    @property
    def place(self) -> int:
        """Runs ahead of this one in the queue, plus one; 0 once it has started (or ended)."""
        return self._place(self)

    @property
    def trace(self) -> Trace | None:
        """Header, frames so far, outcome; None while waiting."""
        return self._trace

    @property
    def done(self) -> bool:
        """The outcome is there."""
        return self._trace is not None and self._trace.outcome is not None

    def cancel(self, reason: str = "Stopped; the text so far is kept.") -> None:
        """Ask the worker to stop after the forward under way. Safe to call at any time, more than once."""
        if not self.cancelled.is_set():
            self.cancel_reason = reason
            self.cancelled.set()
            self._wake()

    def pause(self) -> None:
        """Ask the worker to wait before the next forward. What is waited does not count against deadlines."""
        with self._changed:
            if self._paused_at is None and not self.done:
                self._paused_at = time.monotonic()

    def resume(self) -> None:
        """Go on after a pause."""
        with self._changed:
            if self._paused_at is not None:
                self._paused_before += time.monotonic() - self._paused_at
                self._paused_at = None
        self._wake()

    @property
    def paused(self) -> bool:
        """Waiting between forwards because somebody asked for it."""
        return self._paused_at is not None

    @property
    def paused_seconds(self) -> float:
        """How long the run has been paused, all pauses together."""
        since = self._paused_at
        return self._paused_before + (0.0 if since is None else time.monotonic() - since)

    def next_events(self, cursor: int, timeout: float | None = None) -> list[Event]:
        """Events from number `cursor` on (0 is the header); waits for one, at most `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._count() > cursor, timeout)
            return self._since(cursor)

    def events(self) -> Iterator[Event]:
        """All events, as they come, until the outcome."""
        cursor = 0
        while True:
            for event in self.next_events(cursor):
                cursor += 1
                yield event
                if isinstance(event, Outcome):
                    return

    @contextmanager
    def telling(self, told: Callable[[], None]) -> Iterator[None]:
        """Call `told` after every event while the context lasts, on the worker's thread; it has to be quick."""
        with self._changed:
            self._told.append(told)
        try:
            yield
        finally:
            with self._changed:
                self._told.remove(told)

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """Wait for the outcome; None when `timeout` seconds passed first."""
        with self._changed:
            self._changed.wait_for(lambda: self.done, timeout)
            return self._trace.outcome if self._trace else None

    # --- for the worker -------------------------------------------------------------------------

    def start(self, header: Header) -> None:
        """The run left the queue."""
        with self._changed:
            self._trace = Trace(header)
            self._tell()

    def append(self, event: Frame | Outcome) -> None:
        """The next frame, or the end."""
        with self._changed:
            if self._trace is None:
                raise RuntimeError("A run starts with its header.")
            self._trace.append(event)
            self._tell()

    def _tell(self) -> None:
        self._changed.notify_all()
        for told in self._told:
            told()

    def _since(self, cursor: int) -> list[Event]:
        """Events from a number on, without going through those before."""
        if self._trace is None:
            return []
        events: list[Event] = [self._trace.header] if cursor == 0 else []
        events += self._trace.frames[max(0, cursor - 1) :]
        if self._trace.outcome is not None and cursor <= 1 + len(self._trace.frames):
            events.append(self._trace.outcome)
        return events

    def _count(self) -> int:
        if self._trace is None:
            return 0
        return 1 + len(self._trace.frames) + (self._trace.outcome is not None)
