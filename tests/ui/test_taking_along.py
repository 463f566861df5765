"""What stands behind exports, links and opened files, without a browser."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import gradio as gr
import pytest

from playground.labs import examples
from playground.runlog.store import RunStore
from playground.settings import Settings
from playground.share import HIDEABLE, read_link
from playground.trace import Trace, TraceError
from playground.ui.components import control_line, turn_line
from playground.ui.export_row import NOTHING_SHOWN, trace_of_value
from playground.ui.files import Outgoing
from playground.ui.generate import GenerateTab, value_of
from playground.ui.links import LinkOpener
from playground.ui.live import stream
from playground.ui.opening import OpenFile
from playground.ui.share import HEADER_ONLY, link_to_run, link_to_shown
from tests.export.traces import hostile_trace
from tests.fakes import PATIENCE, FakeDenoiser, Gate, ask, running
from tests.samples import sample_trace

T = TypeVar("T")


# --- what the viewer shows ------------------------------------------------------------------------


def test_a_viewers_value_holds_its_trace() -> None:
    for trace in (sample_trace(), hostile_trace(), examples.load()[0].trace):
        assert trace_of_value(value_of(trace, autoplay=True)) == Trace.from_lines(trace.to_lines())


def test_a_value_that_still_grows_is_read_up_to_its_last_whole_line() -> None:
    trace = sample_trace(frames=4)
    value = value_of(trace)
    assert trace_of_value(value[: value.rindex('"outcome"') + 30]) == Trace(trace.header, trace.frames)


@pytest.mark.parametrize("value", ["", None, 7, turn_line(), turn_line() + control_line(status="Waiting.")])
def test_no_run_is_a_sentence(value: object) -> None:
    with pytest.raises(TraceError, match=NOTHING_SHOWN):
        trace_of_value(value)


def test_what_a_page_makes_up_is_a_sentence() -> None:
    with pytest.raises(TraceError, match="What the page shows is not a trace"):
        trace_of_value("<b>\n")


def test_a_run_that_the_viewer_reads_by_itself_is_found() -> None:
    """As far as it has come; what comes later is not in what was found."""
    gate = Gate()
    with running(FakeDenoiser(on_forward=gate), gate=gate) as engine:
        run = engine.submit(ask("abc", length=4, steps=4))
        gate.wait()
        value = next(value for value in stream(run, engine) if '"type":"header"' in value)
        found = trace_of_value(value, engine.find)
        gate.open()
        assert run.wait(PATIENCE) is not None
        assert found == Trace(found.header)
        assert trace_of_value(value, engine.find) == run.trace


def test_a_run_that_is_no_longer_held_is_a_sentence() -> None:
    value = turn_line() + sample_trace().to_lines() + control_line(stream="0" * 24, after=1)
    with pytest.raises(TraceError, match="open it from the Runs tab"):
        trace_of_value(value)


@pytest.mark.parametrize("rest", ["", ":", ',"stream":7}}', "[" * 5000])
def test_a_damaged_control_line_is_a_sentence(rest: str) -> None:
    with pytest.raises(TraceError, match="What the page shows is damaged; reload the page"):
        trace_of_value(sample_trace().to_lines() + '{"type":"control"' + rest + "\n")


# --- files ----------------------------------------------------------------------------------------


def test_files_go_once_they_are_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outgoing = Outgoing(kept_seconds=0.0)
    first = Path(outgoing.write("a.txt", [b"one", b"two"]))
    assert first.read_bytes() == b"onetwo"
    second = Path(outgoing.write("b.txt", [b"three"]))
    assert not first.parent.exists()
    assert second.exists()
    kept = Outgoing()
    both = [Path(kept.write("c.txt", [b""])) for _ in range(2)]
    assert all(path.exists() for path in both)


# --- links ----------------------------------------------------------------------------------------


def test_a_link_to_what_is_shown_comes_from_its_header_alone() -> None:
    trace = examples.load()[0].trace
    query, _ = link_to_shown(trace.to_lines().split("\n")[0] + "\n")
    pairs = [tuple(part.split("=")) for part in query.split("&")]
    link = read_link([(name, text.replace("%20", " ")) for name, text in pairs])
    assert link.values is not None
    assert link.values["seed"] == trace.header.seed
    assert '"type":"header"' in HEADER_ONLY


@pytest.mark.parametrize("lines", ["", None, sample_trace().to_lines().split("\n")[1]])
def test_no_header_is_a_sentence(lines: object) -> None:
    with pytest.raises(TraceError, match="no run to link to"):
        link_to_shown(lines)


def test_a_run_without_an_id_is_a_sentence() -> None:
    assert link_to_run("abc")[0] == "run=abc"
    with pytest.raises(ValueError, match="Choose a run first"):
        link_to_run("")


def on_page(folder: Path, ask: Callable[[GenerateTab, RunStore], T]) -> T:
    """What `ask` gives beside a Generate tab and a run log with one run, of somebody else."""

    async def build() -> T:
        with running(FakeDenoiser()) as engine, RunStore.open(f"sqlite:///{folder}/runs.sqlite3") as store:
            store.save(sample_trace("shared-run", length=8, temperature=0.5), "somebody")
            store.flush()
            with gr.Blocks():
                visitor = gr.BrowserState("")
                return ask(GenerateTab(engine, Settings(data=folder), visitor, []), store)

    return asyncio.run(build())


def opened(folder: Path, query: str) -> list[Any]:
    """What opening a link changes: viewer, message, controls."""

    def ask(generate: GenerateTab, store: RunStore) -> list[Any]:
        after = generate.run.click(lambda: None)
        return LinkOpener(generate, store, Settings(data=folder), after).open(query)

    return on_page(folder, ask)


def test_no_link_changes_nothing(tmp_path: Path) -> None:
    for query in ("", "?", "?__theme=dark", "?embed=1"):
        assert all(update == gr.skip() for update in opened(tmp_path, query))


def test_a_link_fills_in(tmp_path: Path) -> None:
    viewer, message, prompt, _, seed, locked, *_ = opened(tmp_path, "?prompt=Why%3F&length=12&seed=0")
    assert (prompt, seed, locked) == ("Why?", 0, True)
    assert json.loads(viewer).keys() == {"type", "turn"}
    assert message == "These settings come from a link; press Run to start."
    *_, seed, locked = opened(tmp_path, "?prompt=Why%3F")[:6]
    assert (seed, locked) == (None, False)


def test_a_link_to_a_stored_run_shows_it(tmp_path: Path) -> None:
    viewer, message, prompt, *_ = opened(tmp_path, "?run=shared-run")
    assert trace_of_value(viewer).header.run_id == "shared-run"
    assert prompt == "Write one sentence about rain."
    assert message == "This run was opened from a link."


@pytest.mark.parametrize(
    "query", ["?run=other", "?prompt=a&length=900", "?prompt=a&top_p=0.001", "?z=%%%", "?hide=x&embed=1"]
)
def test_a_wrong_link_changes_the_message_only(tmp_path: Path, query: str) -> None:
    viewer, message, *controls = opened(tmp_path, query)
    assert viewer == gr.skip()
    assert message.endswith(".")
    assert all(update == gr.skip() for update in controls)


def test_everything_that_can_be_hidden_is_offered_by_name() -> None:
    assert all(title and name.isalpha() for name, title in HIDEABLE.items())


# --- files opened ---------------------------------------------------------------------------------


def test_a_file_is_gone_once_it_was_read(tmp_path: Path) -> None:
    def ask(generate: GenerateTab, _: RunStore) -> list[list[Any]]:
        opener = OpenFile(generate, lambda: None)
        answers = []
        for data in (sample_trace("one").to_lines() + sample_trace("two").to_lines(), "Dear diary"):
            path = tmp_path / "file.jsonl"
            path.write_text(data)
            answers.append(opener._open(str(path)))
            assert not path.exists()
        return answers

    good, bad = on_page(tmp_path, ask)
    assert trace_of_value(good[0]).header.run_id == "one"
    assert good[1] == "file.jsonl holds 2 runs; the first of them was opened."
    assert bad[0] == gr.skip()
    assert "file.jsonl is not a trace" in bad[2]
