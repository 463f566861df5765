"""The API beside the page: the same runs, and the same sentences for what cannot be run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.browser.launching import PATIENCE, App


@pytest.fixture(scope="module")
def client(app: App) -> Iterator[Client]:
    """As people call it from Python."""
    client = Client(app.url, verbose=False)
    yield client
    client.close()


def test_generate(app: App, client: Client) -> None:
    """A text, its figures, and the seed that makes it again; the run is in the log."""
    knobs: dict[str, Any] = {"prompt": "Say hello to the API.", "length": 6, "threshold": 0.5, "temperature": 1}
    first = client.predict(**knobs, api_name="/generate")
    assert first["result"] == "finished"
    assert 0 < first["tokens"] <= 6
    assert first["forwards"] > 0
    trace = app.wait_for_run("Say hello to the API.")
    assert trace.header.run_id == first["run_id"]
    assert trace.outcome is not None
    assert trace.outcome.text == first["text"]
    assert client.predict(**knobs, seed=first["seed"], api_name="/generate")["text"] == first["text"]


def test_only_generate_is_offered(client: Client) -> None:
    """What the page's buttons do is nobody else's business."""
    described = client.view_api(return_format="dict", print_info=False)
    assert list(described["named_endpoints"]) == ["/generate"]
    assert described["unnamed_endpoints"] == {}


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"prompt": ""}, "The prompt is empty; write what the text should be about."),
        ({"length": 0}, "Length must be from 1 to 256; 0 was sent."),
        ({"length": 300}, "Length 300 is over this app's limit; use at most 256."),
        ({"steps": -1}, "Steps must be from 1 to 256; -1 was sent."),
        ({"block": 1.5}, "Block must be a whole number from 0 to 1024; 1.5 was sent."),
        ({"threshold": 1.01}, "Threshold must be from 0 to 1; 1.01 was sent."),
        ({"temperature": "hot"}, "Temperature must be a finite number from 0 to 2; 'hot' was sent."),
        ({"seed": 2**32}, "Seed must be from 0 to 4,294,967,295; 4294967296 was sent."),
        ({"schedule": "whenever"}, "Schedule 'whenever' is unknown; choose 'even', "),
        ({"model": "gpt"}, "There is no model called 'gpt'; choose from: pocket."),
    ],
)
def test_bad_values_are_answered_with_a_sentence(client: Client, knobs: dict[str, Any], sentence: str) -> None:
    """One that says what was wrong and what is allowed."""
    with pytest.raises(AppError) as caught:
        client.predict(**{"prompt": "Hello.", "length": 2, **knobs}, api_name="/generate")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none(app: App, number: str) -> None:
    """No client writes these, but a socket takes any text."""
    body = f'{{"data": ["Hello.", 2, 2, 2, "threshold", "leftmost", 0.7, {number}, null, "pocket"]}}'
    event, data = call(app, body)
    assert event == "error"
    assert "Temperature must be a finite number from 0 to 2" in data["error"]


def test_bodies_that_are_no_call(app: App) -> None:
    """They are refused, and the app lives on."""
    for body in ("{", '{"data": 1}', "[]"):
        answer = httpx.post(f"{app.url}/gradio_api/call/generate", content=body, headers=JSON, timeout=PATIENCE)
        assert 400 <= answer.status_code < 500
    assert app.health() is not None


JSON = {"content-type": "application/json"}


def call(app: App, body: str) -> tuple[str, Any]:
    """Send a body as it is and give the event and its data that come back."""
    with httpx.Client(base_url=f"{app.url}/gradio_api/call/generate", timeout=PATIENCE, trust_env=False) as http:
        answer = http.post("", content=body, headers=JSON)
        assert answer.status_code == 200, answer.text
        stream = http.get(f"/{answer.json()['event_id']}").text
    event = stream.rpartition("event: ")[2]
    name, _, data = event.strip().partition("\ndata: ")
    return name, json.loads(data)
