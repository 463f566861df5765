"""What people take along and bring back: every export, beside the viewer and in the Runs tab; a file opened again."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from playground.export import read_traces, trace_csv, trace_text
from playground.export.formats import FORMATS
from playground.export.images import trace_png
from playground.labs import examples
from playground.trace import Trace
from tests.browser.conftest import Visitor
from tests.browser.launching import App
from tests.browser.test_runs_tab import download
from tests.browser.visiting import Visit
from tests.export.traces import HOSTILE, hostile_trace
from tests.samples import sample_trace


def test_a_recorded_run_is_exported_as_everything(visit: Visitor, tmp_path: Path) -> None:
    """What is shown is what comes, also where nobody has pressed Run yet."""
    page = visit(reduced_motion="reduce")
    trace = examples.load()[0].trace
    page.shows_step(len(trace.frames), trace)
    files = {kind: download(page, f"#export-{kind}", tmp_path) for kind in FORMATS}
    for kind, path in files.items():
        assert path.name == f"unmask-write-a-very-short-story-about-{trace.header.run_id[:8]}.{FORMATS[kind].suffix}"
    assert files["jsonl"].read_text("utf-8") == trace.to_lines()
    assert read_traces(files["html"].read_bytes()) == [trace]
    assert files["csv"].read_bytes() == trace_csv(trace).encode()
    assert files["text"].read_text("utf-8") == trace_text(trace)
    assert files["png"].read_bytes() == trace_png(trace)
    assert Image.open(io.BytesIO(files["gif"].read_bytes())).format == "GIF"
    expect(page.page.locator("#export-message")).to_be_hidden()


def test_a_picture_is_of_the_step_and_the_colours_shown(visit: Visitor, tmp_path: Path) -> None:
    """The viewer is at step 7, and the page is dark."""
    page = visit(query="?__theme=dark", reduced_motion="reduce")
    trace = examples.load()[0].trace
    page.shows_step(len(trace.frames), trace)
    page.scrubber.fill("7")
    page.shows_step(7, trace)
    assert download(page, "#export-png", tmp_path).read_bytes() == trace_png(trace, 7, dark=True)


def test_a_run_is_taken_along_and_brought_back(app: App, visit: Visitor, tmp_path: Path) -> None:
    """From the viewer, from the Runs tab; the files open again in another browser, step for step."""
    page = visit()
    page.ask("A lantern, in a word.", length=6)
    page.run()
    page.wait_for_end()
    trace = app.wait_for_run("lantern")
    lines = download(page, "#export-jsonl", tmp_path)
    assert lines.read_text("utf-8") == trace.to_lines()
    page.tab("Runs")
    expect(page.page.locator("#runs-one")).to_be_hidden()
    page.choose("lantern")
    expect(page.page.locator("#runs-one")).to_be_visible()
    player = download(page, "#runs-export-html", tmp_path)
    assert read_traces(player.read_bytes()) == [trace]
    assert download(page, "#runs-export-png", tmp_path).read_bytes() == trace_png(trace)

    other = visit(reduced_motion="reduce")
    for path in (lines, player):
        other.tab("Runs")
        expect(other.page.locator("#runs-count")).to_have_text("0 runs.")
        choose_file(other, path)
        expect(other.message).to_have_text(f"{path.name} was opened.")
        for k in (1, len(trace.frames)):
            other.scrubber.fill(str(k))
            other.shows_step(k, trace)


def choose_file(page: Visit, path: Path) -> None:
    """Press the button and choose a file."""
    with page.page.expect_file_chooser() as chooser:
        page.page.locator("#runs-file").click()
    chooser.value.set_files(path)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("diary.txt", b"Dear diary", "diary.txt is not a trace; choose a file"),
        ("empty.jsonl", b"", "empty.jsonl is not a trace"),
        ("cut.jsonl", sample_trace().to_lines()[:-40].encode(), "This line is not part of a trace"),
        ("new.jsonl", sample_trace().to_lines().replace('"format":1', '"format":7').encode(), "update the app"),
    ],
)
def test_a_file_that_is_no_trace(visit: Visitor, tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    """One sentence, and the page stays as it was."""
    (tmp_path / name).write_bytes(data)
    page = visit(reduced_motion="reduce")
    page.tab("Runs")
    choose_file(page, tmp_path / name)
    expect(page.page.locator("#runs-about")).to_contain_text(sentence)
    page.tab("Generate")
    trace = examples.load()[0].trace
    page.shows_step(len(trace.frames), trace)


def test_a_hostile_file_stays_text(visit: Visitor, tmp_path: Path) -> None:
    """Opened, looked at, exported again; its name too."""
    trace = hostile_trace()
    path = tmp_path / "<img src=x onerror=window.pwned=1>.jsonl"
    path.write_text(trace.to_lines(), "utf-8")
    page = visit(reduced_motion="reduce")
    page.tab("Runs")
    choose_file(page, path)
    expect(page.page.locator(".um-prompt")).to_have_text(HOSTILE)
    page.page.locator("#export-link").click()
    expect(page.page.locator("#export-line .unmask-share-said")).to_contain_text("Link copied.")
    again = download(page, "#export-html", tmp_path)
    assert read_traces(again.read_bytes()) == [Trace.from_lines(trace.to_lines())]
    assert page.evaluate("window.pwned === undefined")
    assert page.evaluate("document.querySelectorAll('[onerror], img[src=x]').length") == 0


def test_nothing_to_export_is_said(visit: Visitor) -> None:
    """A link with settings empties the canvas; then there is nothing to take along."""
    page = visit(query="?prompt=Hello")
    expect(page.message).to_contain_text("press Run")
    page.page.locator("#export-csv").click()
    expect(page.page.locator("#export-message")).to_contain_text("There is no run to export yet")
    page.page.locator("#export-link").click()
    expect(page.page.locator("#export-line")).to_contain_text("There is no run to link to yet")


def test_a_run_that_goes_on_can_be_exported(visit: Visitor, tmp_path: Path) -> None:
    """What has come so far is a trace without an end."""
    page = visit()
    page.preset("Any order")
    page.set_number("length", 60)
    page.set_number("steps", 60)
    page.prompt.fill("Something long that is interrupted.")
    page.run()
    page.wait_for_steps(3)
    path = download(page, "#export-jsonl", tmp_path)
    page.stop_button.click()
    page.wait_for_end("Stopped")
    (trace,) = read_traces(path.read_bytes())
    assert trace.header.prompt == "Something long that is interrupted."
    assert trace.frames
    assert trace.outcome is None

    page.tab("Runs")
    choose_file(page, path)
    expect(page.player).to_have_attribute("data-state", "ended")
    expect(page.page.locator(".um-status-message")).to_have_text("The run had not ended when this was saved.")
    assert download(page, "#export-jsonl", tmp_path).read_text("utf-8") == trace.to_lines()


def test_a_filled_text_is_exported_too(visit: Visitor, tmp_path: Path) -> None:
    """Beside the Infill tab's own viewer, whose step a picture shows."""
    page = visit(reduced_motion="reduce")
    page.tab("Infill")
    page.page.locator("#infill-text textarea").fill("The cat[[2]] on the mat.")
    page.page.locator("#infill-fill").click()
    expect(page.page.locator("#infill-result textarea")).to_have_value(re.compile(r"^The cat.* on the mat\.$", re.S))
    viewer = page.page.locator("#infill-viewer")
    expect(viewer.locator(".unmask-player")).to_have_attribute("data-state", "ended")
    (trace,) = read_traces(download(page, "#infill-export-jsonl", tmp_path).read_bytes())
    assert trace.header.start
    viewer.locator(".um-scrubber").fill("1")
    expect(viewer.locator(".um-step")).to_contain_text("Step 1 of")
    assert download(page, "#infill-export-png", tmp_path).read_bytes() == trace_png(trace, 1)
