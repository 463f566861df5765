"""`/unmask/runs/{id}/events`: a run's trace as JSON lines while it grows, to its end.

An id is unguessable, so whoever holds one may watch. Each line is sent once: what a run costs to watch grows with its
length and no faster. Must not know pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.trace import Event, to_line

PATH = "/unmask/runs/{run_id}/events"
SEND_SECONDS = 1 / 30
"""Shortest time between two sendings; more of them would only make a browser lag behind."""
SILENCE_SECONDS = 10.0
"""Longest silence: an empty line keeps proxies from closing a stream that waits, and finds out who has gone."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def events_route(engine: Engine) -> Route:
    """The route. `?after=N` leaves out the first N lines, for a reader whose connection broke; 404 for a run that is
    not known (any more), 400 for an N that is no number; both with one sentence.
    """

    async def events(request: Request) -> Response:
        run = engine.find(request.path_params["run_id"])
        if run is None:
            sentence = "This run is no longer held by the app; runs that ended are listed under Runs."
            return PlainTextResponse(sentence, status_code=404, headers=_HEADERS)
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) < 10):
            return PlainTextResponse("`after` must be a whole number of lines.", status_code=400, headers=_HEADERS)
        return StreamingResponse(_lines(run, int(after)), media_type="application/x-ndjson", headers=_HEADERS)

    return Route(PATH, events)


async def _lines(run: Run, cursor: int) -> AsyncIterator[str]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def told() -> None:
        with suppress(RuntimeError):  # a loop that was closed meanwhile must not hurt the worker that calls this
            loop.call_soon_threadsafe(news.set)

    with run.telling(told):
        while True:
            news.clear()
            done = run.done  # asked first: what comes in between is not the end
            if events := run.next_events(cursor, 0):
                cursor += len(events)
                yield await asyncio.to_thread(_text, events)
            if done:
                return
            if events:
                await asyncio.sleep(SEND_SECONDS)
                continue
            try:
                await asyncio.wait_for(news.wait(), SILENCE_SECONDS)
            except TimeoutError:
                yield "\n"


def _text(events: Sequence[Event]) -> str:
    return "".join(map(to_line, events))
