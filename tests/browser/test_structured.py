"""The JSON tab: a schema is filled while one watches, the verdict is apart from the text, what is wrong is said."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.launching import App
from tests.browser.visiting import Visit

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "<b>kind</b>": {"enum": ["<img src=x onerror=alert(1)>", "person"]},
    },
    "required": ["name", "<b>kind</b>"],
}


def fill(page: Visit, schema: str, prompt: str = "Anna is a person. Describe her as JSON.") -> None:
    page.tab("JSON")
    page.page.locator("#json-schema textarea").fill(schema)
    page.page.locator("#json-prompt textarea").fill(prompt)
    page.page.locator("#json-fill").click()


def test_a_schema_is_filled_and_judged(app: App, visit: Visitor) -> None:
    page = visit()
    fill(page, json.dumps(SCHEMA))
    expect(page.page.locator("#json-viewer .um-pinned").first).to_be_visible()
    expect(page.page.locator("#json-verdict")).to_contain_text("It holds to the schema")
    value = json.loads(page.page.locator("#json-result textarea").input_value())
    assert set(value) == {"name", "<b>kind</b>"}
    assert value["<b>kind</b>"] in SCHEMA["properties"]["<b>kind</b>"]["enum"]  # type: ignore[index]
    expect(page.page.locator("#json-fill")).to_be_visible()
    shown = page.page.locator("#json-viewer .um-final-text")
    expect(shown).to_contain_text(value["name"])
    trace = app.wait_for_run("Anna is a person")
    assert trace.outcome is not None
    assert json.loads(trace.outcome.text) == value
    page.page.locator("#json-slots button").first.click()
    expect(page.page.locator("#json-slots")).to_contain_text("$.name")
    assert page.page.locator("#json img, #json-slots b").count() == 0  # hostile names are text


def test_stop_keeps_what_there_is(visit: Visitor) -> None:
    page = visit()
    fill(page, json.dumps({"type": "array", "items": {"type": "string"}, "minItems": 30, "maxItems": 30}))
    page.page.locator("#json-stop").click()
    expect(page.page.locator("#json-verdict")).to_contain_text("stopped before it was whole")
    expect(page.page.locator("#json-fill")).to_be_visible()
    expect(page.page.locator("#json-result textarea")).not_to_have_value("")


@pytest.mark.parametrize(
    ("schema", "prompt", "said"),
    [
        ("", "x", "not JSON"),
        ("{", "x", "line 1"),
        ("[" * 100_000, "x", "too deep"),
        ("3", "x", "JSON object"),
        ("[]", "x", "at least one function"),
        ('{"type": "robot"}', "x", "not valid"),
        ('{"type": "null"}', "", "rompt"),
    ],
)
def test_what_is_wrong_is_one_sentence(visit: Visitor, schema: str, prompt: str, said: str) -> None:
    page = visit()
    fill(page, schema, prompt)
    expect(page.page.locator("#json-message")).to_contain_text(said)
    expect(page.page.locator("#json-fill")).to_be_visible()
