"""A run from the command line: started, followed to its end, stopped by Ctrl+C, kept in the run log.

Must not know how it is shown (see `views`) or what the options were.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from playground.cli.terminal import BadRequest, say
from playground.cli.views import View
from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.engine.state import ModelState
from playground.request import GenerationRequest, RequestError
from playground.settings import Settings, get_settings
from playground.trace import Outcome, Result, Trace

EXIT_CODES = {Result.FINISHED: 0, Result.FAILED: 1, Result.DEADLINE: 3, Result.STOPPED: 130}
LOOK_SECONDS = 0.2
"""How often a run that has not started is asked what it waits for."""


def perform(request: GenerationRequest, view: View, *, log: bool) -> int:
    """Run `request`, show it in `view`, record it; gives the exit code.

    Raises:
        BadRequest: over a limit of this deployment.
        BrokenPipeError: whoever read the output has gone; the run was stopped and recorded.
    """
    engine = open_engine(settings := get_settings())
    try:
        run = engine.submit(request)
    except RequestError as error:
        engine.close()
        raise BadRequest(str(error)) from None
    try:
        with _stopping(run), view:
            outcome = _follow(run, engine, view)
    finally:
        # Not done: Ctrl+C came twice, and the process is about to end however deep in a forward the model is.
        if run.done and run.trace is not None:
            engine.close()
            if log:
                record(run.trace, settings)
    return EXIT_CODES[outcome.result]


def open_engine(settings: Settings) -> Engine:
    """The engine of this process."""
    return Engine(settings)


def record(trace: Trace, settings: Settings) -> None:
    """Keep a run in the run log; one line on stderr where that fails."""
    # Imported last: SQLAlchemy takes a second to load, and the text need not wait for it.
    from playground.runlog.store import RunStore

    with RunStore.open(settings.database_url) as store:
        store.save(trace, "")
        store.flush()
        if store.problem:
            say(store.problem)


def _follow(run: Run, engine: Engine, view: View) -> Outcome:
    seen = 0
    try:
        while True:
            events = run.next_events(seen, LOOK_SECONDS)
            if not events and not seen:
                view.wait(_waiting_for(run, engine))
            for event in events:
                seen += 1
                view.show(event)
                if isinstance(event, Outcome):
                    return event
    except OSError:
        run.cancel("The output was closed; the text so far is kept.")
        run.wait()
        raise


def _waiting_for(run: Run, engine: Engine) -> str:
    status = engine.status(run.request.model)
    if run.cancelled.is_set():
        return "Stopping"
    if status.state is ModelState.LOADING:
        return f"Loading the model ({status.seconds:.0f} s)"
    return "Reading the prompt"


@contextmanager
def _stopping(run: Run) -> Iterator[None]:
    """Inside, the first Ctrl+C stops `run` after the forward under way; another raises KeyboardInterrupt."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        if run.cancelled.is_set():
            raise KeyboardInterrupt
        run.cancel()

    before = signal.getsignal(signal.SIGINT)
    # Jobs that a shell put into the background ignore Ctrl+C, and only the main thread may change that.
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
