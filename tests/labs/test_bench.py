"""The benchmark on tiny settings: figures that make sense, arms that write the same; never how fast anything is."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from playground.cli.main import app
from playground.denoisers.catalogue import POCKET_CHECKPOINT as CHECKPOINT
from playground.denoisers.pocket import PocketDenoiser
from playground.engine.engine import Engine
from playground.labs import bench, bench_browser, bench_page, bench_startup
from playground.labs.bench import Options, measure
from playground.labs.bench_forward import Sizes, measure_forward
from playground.labs.bench_results import Spread
from playground.labs.bench_runs import (
    PROMPTS,
    BenchError,
    asked,
    engine_on,
    finish,
    measure_batch,
    measure_cache,
    measure_run,
    without_cache,
)
from playground.labs.bench_timing import in_turn, prompt_of, seconds_of
from playground.request import RequestError
from playground.settings import Settings
from tests.fakes import FakeDenoiser

CPU = torch.device("cpu")


@pytest.fixture
def engine(pocket: PocketDenoiser) -> Iterator[Engine]:
    """An engine on the session's model."""
    with engine_on(pocket, Settings(device="cpu")) as engine:
        yield engine


def assert_sane(result: object) -> None:
    """Every spread of a result is positive, finite and in order."""
    spreads = [getattr(result, field.name) for field in fields(result)]  # type: ignore[arg-type]
    found = [spread for spread in spreads if isinstance(spread, Spread)]
    assert found
    for spread in found:
        assert 0 < spread.low <= spread.median <= spread.high < math.inf


# --- timing -------------------------------------------------------------------------------------


def test_a_spread_is_median_lowest_and_highest() -> None:
    assert Spread.of([3, 1, 8]) == Spread(3.0, 1.0, 8.0, 3)
    assert Spread.of(iter([1, 2])) == Spread(1.5, 1.0, 2.0, 2)


def test_arms_are_taken_in_turn_after_a_warm_up() -> None:
    calls: list[str] = []

    def arm(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    times = in_turn({"a": lambda: arm("a"), "b": lambda: arm("b")}, 3)
    assert calls == ["a", "b", "a", "b", "b", "a", "a", "b"]
    assert times == {"a": [3.0, 6.0, 7.0], "b": [4.0, 5.0, 8.0]}


def test_no_warm_up_where_none_is_wanted() -> None:
    calls: list[int] = []
    in_turn({"a": lambda: float(calls.append(1) or 1)}, 2, warm_up=False)
    assert len(calls) == 2


def test_seconds_are_positive() -> None:
    assert seconds_of(lambda: None, CPU) >= 0


@pytest.mark.parametrize("count", [16, 40, 64])
def test_a_prompt_has_exactly_the_tokens_asked_for(pocket: PocketDenoiser, count: int) -> None:
    assert len(pocket.tokens.encode_prompt(prompt_of(pocket.tokens, count))) == count


def test_a_prompt_shorter_than_the_template_is_refused(pocket: PocketDenoiser) -> None:
    with pytest.raises(ValueError, match="choose a longer one"):
        prompt_of(pocket.tokens, 3)


# --- forward ------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_checkpoint() -> None:
    sizes = Sizes.of_checkpoint(Settings().pocket / CHECKPOINT)
    assert (sizes.layers, sizes.width, sizes.vocabulary) == (30, 576, 49_152)
    assert sizes.shapes == ((960, 576), (576, 576), (3072, 576), (576, 1536))


def test_arithmetic_is_counted_by_hand() -> None:
    sizes = Sizes(layers=2, width=4, vocabulary=10, shapes=((8, 4), (4, 4)))
    assert sizes.layer_flop(3) == 2 * 3 * 2 * (8 * 4 + 4 * 4)
    attention = 2 * (2 * 3 * (5 + 3) * 4 + 2 * 3 * (5 + 3) * 4)
    assert sizes.forward_flop(3, 5) == sizes.layer_flop(3) + attention + 2 * (3 + 1) * 4 * 10


def test_forward_on_a_tiny_canvas(pocket: PocketDenoiser) -> None:
    sizes = Sizes.of_checkpoint(Settings().pocket / CHECKPOINT)
    results = list(measure_forward(pocket, sizes, 2, canvases=(2, 4), prompt_tokens=16, side=64))
    assert [result.canvas for result in results] == [2, 4]
    for result in results:
        assert_sane(result)
        assert result.seconds.count == 2
        assert result.rate.high == pytest.approx(result.gflop / result.seconds.low, rel=1e-3)


# --- runs ---------------------------------------------------------------------------------------


def test_the_asked_run(engine: Engine) -> None:
    result = measure_run(engine, 2, length=6, steps=3)
    assert_sane(result)
    assert (result.forwards, result.tokens, result.tokens_per_forward) == (3, 6, 2.0)
    assert result.tokens_per_second_model.median >= result.tokens_per_second.median
    assert result.model.low <= result.total.low


def test_the_cache_changes_no_token(engine: Engine, pocket: PocketDenoiser) -> None:
    result = measure_cache(engine, pocket, 1, prompt_tokens=16, canvas=6, block=4)
    assert_sane(result)
    assert result.same_tokens
    assert result.forwards == 6


def test_a_cache_that_did_change_a_token_would_be_seen(
    engine: Engine, pocket: PocketDenoiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.labs.bench_runs.without_cache", lambda _, request: [1] * request.length)
    assert not measure_cache(engine, pocket, 1, prompt_tokens=16, canvas=2, block=0).same_tokens


def test_the_plain_loop_recomputes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    fake = FakeDenoiser(on_prepare=prepared.append)
    canvas = without_cache(fake, asked("abc", length=4, steps=4, block=2))
    assert len(prepared) == len(fake.forwards) == 4
    assert fake.spec.mask_id not in canvas


def test_a_batch_writes_what_its_runs_write_alone(engine: Engine) -> None:
    result = measure_batch(engine, 2, prompts=PROMPTS[:3], length=4, steps=2)
    assert_sane(result)
    assert (result.runs, result.same_texts) == (3, 3)
    assert result.alone.count == 6
    assert result.slowest.count == 2


def test_a_run_that_fails_ends_the_benchmark() -> None:
    fake = FakeDenoiser(context_limit=4)
    with engine_on(fake, Settings(device="cpu")) as engine, pytest.raises(BenchError, match="ended early: The prompt"):
        finish(engine.submit(asked("abcdef", length=4, steps=4, block=0)))


# --- start-up and page --------------------------------------------------------------------------


def test_a_fresh_process_is_measured() -> None:
    start = bench_startup._start()
    assert 0 < start.imports + start.load < start.ready
    assert 0.3 < start.peak_ready <= start.peak_run < 16


def test_a_model_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNMASK_POCKET", str(tmp_path))
    with pytest.raises(BenchError, match=r"could not load the model .*lacks"):
        bench_startup._start()


@pytest.mark.parametrize("missing", ["browser", "playwright"])
def test_what_the_page_benchmark_lacks_is_said_at_once(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setattr(bench_browser.shutil, "which", lambda _: None)
    if missing == "playwright":
        monkeypatch.setattr(bench_browser.importlib.util, "find_spec", lambda _: None)
    else:
        pytest.importorskip("playwright")
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", "/nowhere")
    with pytest.raises(BenchError, match="playwright install chromium"):
        measure(Options(frozenset({"page"})), Settings())


@pytest.mark.browser
def test_the_page_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        bench_browser.find_browser()
    except BenchError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(bench_browser, "FORWARDS", 6)
    result = bench_page.measure_page(1, print)
    assert_sane(result)
    assert (result.length, result.forwards) == (6, 6)
    assert result.same_text
    assert result.click_to_end.low > result.with_page.low / 2


# --- all together -------------------------------------------------------------------------------


def test_only_what_was_asked_for_is_measured(monkeypatch: pytest.MonkeyPatch, pocket: PocketDenoiser) -> None:
    monkeypatch.setattr(bench, "load_denoiser", lambda *_: pocket)
    told: list[str] = []
    parts: list[str] = []
    options = Options(frozenset({"run"}), repeats=1, steps=2, length=4)
    report = measure(
        options, Settings(max_length=2, max_active=1), tell=told.append, done=lambda part, _: parts.append(part)
    )
    assert report.run is not None
    assert report.run.length == 4, "the limits of an app are not those of its benchmark"
    assert report.forward is report.cache is report.batch is report.startup is report.page is None
    assert told == ["Measuring: run", "Loading the model"]
    assert parts == ["run"]
    assert report.machine.cores >= 1


def test_a_bad_run_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(RequestError, match="Steps must be from 1 to 1024"):
        measure(Options(frozenset({"startup"}), steps=0), Settings())


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, pocket: PocketDenoiser) -> None:
    monkeypatch.setattr(bench, "load_denoiser", lambda *_: pocket)
    arguments = ["bench", "--only", "run", "--steps", "2", "--length", "4", "--repeats", "1"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    body = json.loads(result.stdout)
    assert body["run"]["forwards"] == 2
    assert body["cache"] is None
    table = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert "Tokens a forward" in table.stdout
    assert "2.00" in table.stdout
