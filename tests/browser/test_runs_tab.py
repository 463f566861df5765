"""The Runs tab: what was run is found, opened, restored, taken away and deleted."""

from __future__ import annotations

import csv
from pathlib import Path

from playwright.sync_api import expect

from playground.presets import PRESETS
from playground.trace import Trace
from playground.ui.knobs import SCHEDULES
from tests.browser.conftest import Visitor
from tests.browser.launching import App
from tests.browser.visiting import Visit


def test_a_run_is_found_opened_and_restored(app: App, visit: Visitor) -> None:
    """Search, open, restore; the restored seed gives the same text although tokens were drawn."""
    page = visit()
    page.ask("Invent a name for a ferry.", length=12)
    page.set_number("temperature", 1)
    page.run()
    text = page.wait_for_end()
    trace = app.wait_for_run("ferry")
    page.ask("Invent a name for a goat.", length=4)
    page.set_number("temperature", 0)
    page.run()
    page.wait_for_end()

    page.tab("Runs")
    expect(page.rows()).to_have_count(2)
    expect(page.page.locator("#runs-count")).to_have_text("2 runs.")
    page.page.locator("#runs-search input, #runs-search textarea").fill("FERRY")
    expect(page.rows()).to_have_count(1)
    expect(page.rows()).to_have_text("Invent a name for a ferry.")
    page.choose("ferry")
    expect(page.page.locator("#runs-about")).to_contain_text(str(trace.header.seed))

    page.page.locator("#runs-open").click()
    expect(page.run_button).to_be_visible()
    expect(page.page.locator(".um-prompt")).to_have_text("Invent a name for a ferry.")
    expect(page.final_text).to_have_text(text)
    page.shows_step(len(trace.frames), trace)
    expect(page.prompt).to_have_value("Invent a name for a goat.")

    page.tab("Runs")
    page.choose("ferry")
    page.page.locator("#runs-restore").click()
    expect(page.prompt).to_have_value("Invent a name for a ferry.")
    expect(page.number("length")).to_have_value("12")
    expect(page.number("temperature")).to_have_value("1")
    expect(page.number("acceptance")).to_have_value(f"{PRESETS['fast'].values['acceptance']:g}")
    titles = {name: title for title, name in SCHEDULES}
    expect(page.page.locator("#schedule input")).to_have_value(titles[PRESETS["fast"].values["schedule"]])
    expect(page.seed).to_have_value(str(trace.header.seed))
    expect(page.lock).to_be_checked()

    page.run()
    assert page.wait_for_end() == text
    expect(page.seed).to_have_value(str(trace.header.seed))
    first, second = app.runs("ferry")
    assert (first.seed, first.text) == (second.seed, second.text)
    assert first.id != second.id


def test_runs_are_deleted_and_downloaded(app: App, visit: Visitor, tmp_path: Path) -> None:
    """Both downloads hold all the visitor's runs; deletion asks once more, and then takes the chosen one only."""
    page = visit()
    texts = {}
    for animal in ("badger", "heron"):
        page.ask(f'Greet the {animal}, please: "hello", or so.', length=4)
        page.run()
        texts[animal] = page.wait_for_end()
        app.wait_for_run(animal)
    page.tab("Runs")
    expect(page.rows()).to_have_count(2)

    with download(page, "#runs-csv", tmp_path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == [texts["heron"], texts["badger"]]
    assert rows[0]["prompt"] == 'Greet the heron, please: "hello", or so.'
    assert "visitor" not in rows[0]
    lines = download(page, "#runs-jsonl", tmp_path).read_text("utf-8").splitlines(keepends=True)
    traces = [Trace.from_lines(lines[start:end]) for start, end in pieces(lines)]
    outcomes = [trace.outcome for trace in traces if trace.outcome is not None]
    assert [outcome.text for outcome in outcomes] == [texts["heron"], texts["badger"]]

    page.choose("badger")
    expect(page.page.locator("#runs-confirm")).to_be_hidden()
    page.page.locator("#runs-delete").click()
    page.page.locator("#runs-confirm").click()
    expect(page.rows()).to_have_count(1)
    expect(page.rows()).to_contain_text("heron")
    expect(page.page.locator("#runs-confirm")).to_be_hidden()
    expect(page.page.locator("#runs-open")).to_be_disabled()
    assert app.runs("Greet the badger") == []
    assert len(app.runs("Greet the heron")) == 1


def test_arrow_keys_choose(app: App, visit: Visitor) -> None:
    """The run whose row is marked is the chosen one, also for keyboards."""
    page = visit()
    for bird in ("magpie", "puffin"):
        page.ask(f"Draw a {bird}.", length=2)
        page.run()
        page.wait_for_end()
        app.wait_for_run(bird)
    page.tab("Runs")
    expect(page.rows()).to_have_text(["Draw a puffin.", "Draw a magpie."])
    about = page.page.locator("#runs-about")
    page.page.locator("#runs-refresh").focus()
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("ArrowDown")
    expect(about).to_contain_text("Draw a magpie.")
    page.page.keyboard.press("ArrowUp")
    expect(about).to_contain_text("Draw a puffin.")
    page.page.locator("#runs-open").press("Enter")
    expect(page.page.locator(".um-prompt")).to_have_text("Draw a puffin.")


def test_empty_list_says_so(visit: Visitor) -> None:
    """A visitor without runs sees a sentence and no button that would do nothing."""
    page = visit()
    page.tab("Runs")
    expect(page.page.locator("#runs-count")).to_have_text("0 runs.")
    expect(page.page.locator("#runs-about")).to_contain_text("No run is chosen.")
    for button in ("open", "restore", "delete"):
        expect(page.page.locator(f"#runs-{button}")).to_be_disabled()


def download(page: Visit, button: str, folder: Path) -> Path:
    """Press a button and keep the file that comes."""
    with page.page.expect_download() as coming:
        page.page.locator(button).click()
    path = folder / coming.value.suggested_filename
    coming.value.save_as(path)
    return path


def pieces(lines: list[str]) -> list[tuple[int, int]]:
    """Where each trace of a download starts and ends."""
    starts = [at for at, line in enumerate(lines) if line.startswith('{"type":"header"')]
    return list(zip(starts, [*starts[1:], len(lines)], strict=True))
