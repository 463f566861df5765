"""Presses Run as a browser does and reads the run to its end without drawing it.

What a browser draws costs a server nothing unless both share a machine, as they do in a benchmark; this tells the two
apart. The page is found by the ids of its controls, and by nothing else. Must not know engines or run logs.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from playground.labs.bench_runs import BenchError

RUN_ID = "run"
API = "/gradio_api/queue"
EVENTS = "/unmask/runs/{run_id}/events"
_STREAM = re.compile(r'\\"stream\\":\\"([0-9a-f]+)\\",\\"after\\":(\d+)')
"""The control line that says where the run's lines are, as it stands in a JSON string."""
READ_SECONDS = 120.0
"""Longest silence between two messages."""


@contextmanager
def reading(address: str, values: Mapping[str, Any]) -> Iterator[Callable[[], int]]:
    """Asks for a run with `values` (by the controls' ids; the others keep theirs) and reads it; gives the bytes read.

    Raises:
        BenchError: the app does not answer as this reader knows it.
    """
    with httpx.Client(base_url=address, timeout=READ_SECONDS) as client:
        try:
            question = _question(client.get("/config").json(), values)
            yield lambda: _read(client, question)
        except (httpx.HTTPError, KeyError, StopIteration, ValueError) as error:
            raise BenchError(f"The page's stream could not be read ({type(error).__name__}).") from None


def _question(config: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """What the browser posts when Run is pressed."""
    components = {component["id"]: component for component in config["components"]}
    run = next(at for at, component in components.items() if component["props"].get("elem_id") == RUN_ID)
    event = next(event for event in config["dependencies"] if [run, "click"] in event["targets"])
    given = [components[at]["props"] for at in event["inputs"]]
    data = [values.get(props.get("elem_id"), props.get("value")) for props in given]
    return {"data": data, "fn_index": event["id"], "trigger_id": run}


def _read(client: httpx.Client, question: dict[str, Any]) -> int:
    session = secrets.token_hex(8)
    client.post(f"{API}/join", json={**question, "session_hash": session}).raise_for_status()
    count, address = 0, ""
    with client.stream("GET", f"{API}/data", params={"session_hash": session}) as answer:
        for line in answer.iter_lines():
            count += len(line)
            if not address and (found := _STREAM.search(line)):
                address = EVENTS.format(run_id=found[1])
                count += _events(client, f"{address}?after={found[2]}")
            if '"msg":"process_completed"' in line.replace(" ", "")[:60]:
                return count
    raise BenchError("The page's stream broke off.")


def _events(client: httpx.Client, address: str) -> int:
    with client.stream("GET", address) as answer:
        answer.raise_for_status()
        return sum(len(part) for part in answer.iter_bytes())
