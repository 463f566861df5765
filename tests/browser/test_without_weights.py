"""A model that is still loading, and one that cannot be: the page says so, and recordings play all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from playground.labs import examples
from tests.browser.conftest import Visitor
from tests.browser.launching import App, started
from tests.browser.visiting import Visit


@dataclass(frozen=True)
class Bare:
    """An app without weights that notices so only when told to."""

    app: App
    gate: Path


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """Its model is loading until somebody makes the gate."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "weights").mkdir()
    gate = folder / "gate"
    script = Path(__file__).with_name("waiting_app.py")
    with started(folder, script, UNMASK_POCKET=str(folder / "weights"), UNMASK_TEST_GATE=str(gate)) as app:
        try:
            yield Bare(app, gate)
        finally:
            gate.touch()


def replay(page: Visit, number: int) -> None:
    """Click a recording and see that it plays and ends."""
    example = examples.load()[number]
    page.page.get_by_role("button", name=example.title).click()
    expect(page.page.locator(".um-prompt")).to_have_text(example.prompt)
    page.scrubber.press("End")
    page.shows_step(len(example.trace.frames), example.trace)


def test_loading_then_failed(bare: Bare, visit: Visitor) -> None:
    """While it loads, runs wait and can be stopped; once it has failed, each gets the sentence, and nothing hangs."""
    page = visit(bare.app)
    health = bare.app.health()
    assert health is not None
    assert (health.status_code, health.json()["model"]["state"]) == (200, "loading")
    expect(page.page.locator("#model-line")).to_contain_text("Recorded runs play meanwhile.")
    expect(page.page.locator(".um-badge")).to_have_text("Recording")
    replay(page, 1)

    page.ask("Are you there?", length=4)
    page.run()
    expect(page.page.locator(".um-invitation-hint")).to_contain_text("The run starts by itself.")
    page.page.keyboard.press("Escape")
    expect(page.run_button).to_be_visible()
    replay(page, 2)
    page.ask("Are you there now?", length=4)
    page.run()
    expect(page.page.locator(".um-invitation-hint")).to_contain_text("The run starts by itself.")

    bare.gate.touch()
    sentence = bare.app.wait_for_model("failed")
    assert sentence.status_code == 503
    message = sentence.json()["model"]["message"]
    assert message.startswith("The embedded model lacks ")
    assert message.endswith("restore assets/pocket from the repository or set UNMASK_POCKET.")
    expect(page.page.locator("#model-line")).to_have_text(message)
    page.wait_for_end("Failed")
    expect(page.page.locator(".um-status-message")).to_have_text(message)


def test_failed_from_the_start(bare: Bare, visit: Visitor) -> None:
    """A page opened afterwards: the sentence, the recordings, and an answer to Run."""
    bare.gate.touch()
    message = bare.app.wait_for_model("failed").json()["model"]["message"]
    page = visit(bare.app)
    expect(page.page.locator("#model-line")).to_have_text(message)
    replay(page, 0)
    replay(page, 3)
    page.ask("Is anybody home?", length=4)
    page.run()
    page.wait_for_end("Failed")
    expect(page.page.locator(".um-status-message")).to_have_text(message)
    outcome = bare.app.wait_for_run("anybody home").outcome
    assert outcome is not None
    assert outcome.message == message
    page.tab("Runs")
    expect(page.rows()).to_have_text("Is anybody home?")
