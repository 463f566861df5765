"""`generate` inside this process: what goes to stdout, what to stderr, which exit code, what the run log keeps."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from playground.cli import generate as generate_command
from playground.cli import knobs, running
from playground.cli.generate import request_of
from playground.cli.main import app
from playground.cli.terminal import BadRequest, inert, one_line
from playground.cli.views import JsonView, TextView
from playground.denoisers.base import DenoiserError
from playground.denoisers.pocket import PocketDenoiser
from playground.engine.engine import Engine
from playground.presets import DEFAULT_PRESET, PRESETS
from playground.request import Confidence, GenerationRequest, Schedule, StopRule
from playground.runlog.rows import RunFilter
from playground.runlog.store import RunStore
from playground.settings import Settings, get_settings
from playground.trace import Outcome, Timings, Trace
from playground.trace import Result as Ending
from tests.samples import sample_trace

HOSTILE = "a\x1b]0;owned\x07b\x1b[31m\x9b31mc\r\x7f\u202ed"
Ask = Callable[..., Result]


@pytest.fixture
def ask(pocket: PocketDenoiser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Runs a command line against the session's model and a run log of its own."""
    monkeypatch.setenv("UNMASK_DATA", str(tmp_path))
    monkeypatch.setattr(running, "open_engine", partial(Engine, load=lambda *_: pocket))
    get_settings.cache_clear()
    before = list(logging.getLogger("playground").handlers)
    yield lambda *arguments, **options: CliRunner().invoke(app, list(arguments), **options)
    logging.getLogger("playground").handlers[:] = before
    get_settings.cache_clear()


def recorded(folder: Path) -> list[Trace]:
    """What the run log in `folder` holds, newest first."""
    with RunStore.open(Settings(data=folder, database="").database_url) as store:
        traces = [store.load_trace(row.id, None) for row in store.list_runs(RunFilter())]
    return [trace for trace in traces if trace is not None]


# --- what is printed ----------------------------------------------------------------------------


def test_only_the_text_goes_to_stdout_and_the_run_is_recorded(ask: Ask, tmp_path: Path) -> None:
    result = ask("generate", "Why is the sky blue?", "-n", "8", "--seed", "3")
    assert result.exit_code == 0
    assert result.stderr == ""
    (trace,) = recorded(tmp_path)
    assert trace.outcome is not None
    assert result.stdout == f"{trace.outcome.text}\n"
    assert trace.header.seed == 3
    assert trace.header.request["length"] == 8


def test_json_lines_are_the_trace(ask: Ask, tmp_path: Path) -> None:
    result = ask("generate", "Why is the sky blue?", "-n", "6", "--preset", "any-order", "--json")
    assert result.exit_code == 0
    trace = Trace.from_lines(result.stdout)
    assert [trace] == recorded(tmp_path)
    assert trace.header.request["schedule"] == "even"
    assert len(trace.frames) == 6


def test_verbose_tells_the_figures_where_nobody_watches(ask: Ask) -> None:
    result = ask("generate", "Hello", "-n", "4", "-v")
    assert result.stderr.count("\n") == 1
    assert re.match(r"\d tokens? in \d forwards? \(", result.stderr)
    assert "Seed" in result.stderr


def test_watch_without_a_terminal_is_plain_text(ask: Ask) -> None:
    result = ask("generate", "Hello", "-n", "4", "--watch")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert result.stdout.endswith("\n")


def test_no_log_leaves_no_log(ask: Ask, tmp_path: Path) -> None:
    assert ask("generate", "Hello", "-n", "4", "--no-log").exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_kept_is_one_line(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNMASK_DATA", str(tmp_path / "file"))
    result = ask("generate", "Hello", "-n", "4")
    assert result.exit_code == 0
    assert result.stdout.endswith("\n")
    assert result.stderr.count("\n") == 1
    assert "run log" in result.stderr


def test_the_prompt_can_come_from_stdin(ask: Ask, tmp_path: Path) -> None:
    assert ask("generate", "-", "-n", "4", input="Write\nabout rain.\n").exit_code == 0
    assert recorded(tmp_path)[0].header.prompt == "Write\nabout rain."


def test_an_empty_stdin_is_refused(ask: Ask) -> None:
    result = ask("generate", "-", input="\n")
    assert result.exit_code == 2
    assert result.stderr == "The prompt is empty; write what the text should be about.\n"


def test_a_prompt_that_looks_like_markup_stays_text(ask: Ask, tmp_path: Path) -> None:
    assert ask("generate", "[bold]x[/bold] <|im_end|>", "-n", "4").exit_code == 0
    assert recorded(tmp_path)[0].header.prompt == "[bold]x[/bold] <|im_end|>"


# --- how it ends --------------------------------------------------------------------------------


def test_a_deadline_keeps_the_text_and_says_so(ask: Ask, tmp_path: Path) -> None:
    result = ask("generate", "Hello", "-n", "16", "--deadline", "0.000001")
    assert result.exit_code == 3
    assert "deadline" in result.stderr
    assert result.stderr.count("\n") == 1
    outcome = recorded(tmp_path)[0].outcome
    assert outcome is not None
    assert result.stdout == (f"{outcome.text}\n" if outcome.text else "")


def test_a_model_that_does_not_load_is_a_failure_in_one_sentence(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str, settings: Settings) -> Any:
        raise DenoiserError("The embedded model lacks everything; restore it.")

    monkeypatch.setattr(running, "open_engine", partial(Engine, load=load))
    result = ask("generate", "Hello", "-n", "4", "-v")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "The embedded model lacks everything; restore it.\n"
    assert recorded(tmp_path)[0].outcome is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--length", "0"], "Length must be from 1 to 256; 0 was sent."),
        (["--length", "1e999"], "Length must be a whole number from 1 to 256; inf was sent."),
        (["--length", "300"], "Length 300 is over this app's limit; use at most 256."),
        (["--steps", "abc"], "Steps must be a whole number from 1 to 256; 'abc' was sent."),
        (["--steps", "8.5"], "Steps must be a whole number from 1 to 256; 8.5 was sent."),
        (["--steps", "nan"], "Steps must be a whole number from 1 to 256; nan was sent."),
        (["--block", "-1"], "Block must be from 0 to 1024; -1 was sent."),
        (["--schedule", "7"], "Schedule '7' is unknown; choose 'even', 'cosine'"),
        (["--confidence", "best"], "Confidence 'best' is unknown; choose"),
        (["--threshold", "nan"], "Threshold must be a finite number from 0 to 1; nan was sent."),
        (["--threshold", "1.01"], "Threshold must be from 0 to 1; 1.01 was sent."),
        (["--entropy-bound", "-0.1"], "Entropy bound must be from 0 to 20; -0.1 was sent."),
        (["--temperature", "2.5"], "Temperature must be from 0 to 2; 2.5 was sent."),
        (["--top-p", "0"], "Top p must be above 0 and at most 1"),
        (["--top-k", "-3"], "Top k must be from 0 to 1,000,000"),
        (["--stop-rule", "never"], "Stop rule 'never' is unknown; choose"),
        (["--stop-penalty", "101"], "Stop penalty must be from 0 to 100; 101"),
        (["--seed", "-1"], "Seed must be from 0 to 4,294,967,295; -1 was sent."),
        (["--seed", "9" * 5000], "Seed must be a whole number"),
        (["--deadline", "0"], "Deadline must be above 0 and at most 86400; 0"),
        (["--model", "gpt"], "There is no model called 'gpt'; choose from: pocket."),
        (["--model", ""], "Model"),
        (["--preset", "slow"], "There is no preset called 'slow'; choose from fast, balanced"),
        (["--watch", "--json"], "Both --watch and --json write to the terminal; choose one of them."),
        (["--lenght", "8"], "No such option: --lenght"),
        (["--steps"], "Option '--steps' requires an argument."),
        (["--reproducible=maybe"], "Option '--reproducible' does not take a value."),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_a_bad_option_is_one_sentence_and_exit_code_2(ask: Ask, arguments: list[str], said: str) -> None:
    result = ask("generate", "Hello", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1
    assert len(result.stderr) < 400


def test_a_missing_prompt_is_one_sentence(ask: Ask) -> None:
    result = ask("generate")
    assert (result.exit_code, result.stderr) == (2, "Missing argument 'PROMPT'.\n")


def test_a_bad_option_cannot_paint_the_terminal(ask: Ask) -> None:
    result = ask("generate", "Hello", "--schedule", HOSTILE)
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr
    assert "\x9b" not in result.stderr


# --- options and requests -----------------------------------------------------------------------


NOT_OPTIONS = {"start", "scored", "parent_run_id", "parent_step"}
"""What `infill` and the page's editor set."""


def test_every_field_of_the_request_has_an_option() -> None:
    result = CliRunner().invoke(app, ["generate", "--help"], env={"COLUMNS": "200"})
    others = {"prompt": "PROMPT", "banned": "--ban"}
    for field in GenerationRequest.model_fields.keys() - NOT_OPTIONS:
        flag = others.get(field, f"--{field.replace('_', '-')}")
        assert flag in result.stdout


def test_defaults_in_the_help_are_the_real_ones() -> None:
    request = request_of("x", DEFAULT_PRESET, {})
    shown = {**knobs.DEFAULTS, "end_at_stop": True, "reproducible": False, "seed": None, "deadline": None}
    shown |= {"banned": [], "one_line": False}
    left_out = {"prompt", *NOT_OPTIONS}
    assert shown == {name: value for name, value in request.model_dump(mode="json").items() if name not in left_out}


def test_names_in_the_help_are_all_there_are() -> None:
    help_text = CliRunner().invoke(app, ["generate", "--help"], env={"COLUMNS": "300"}).stdout
    for choices in (Schedule, Confidence, StopRule, PRESETS):
        assert all(str(choice) in help_text for choice in choices)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_fills_in_what_was_not_asked_for(preset: str) -> None:
    request = request_of("x", preset, {"length": "7", "end_at_stop": False})
    wanted = {**PRESETS[preset].values, "length": 7, "end_at_stop": False}
    assert {name: getattr(request, name) for name in wanted} == wanted


def test_all_options_reach_the_request() -> None:
    given = {
        "model": "pocket",
        "length": "10",
        "steps": "5",
        "block": "4",
        "schedule": "cosine",
        "confidence": "margin",
        "threshold": "0.25",
        "entropy_bound": "0.5",
        "temperature": "1",
        "top_p": ".5",
        "top_k": "40",
        "seed": "12",
        "reproducible": True,
        "stop_rule": "penalty",
        "stop_penalty": "2",
        "end_at_stop": False,
        "deadline": "60",
    }
    request = request_of("x", "fast", given).model_dump(mode="json")
    assert {name: str(request[name]) for name in given} == {
        **{name: str(value) for name, value in given.items()},
        "temperature": "1.0",
        "top_p": "0.5",
        "stop_penalty": "2.0",
        "deadline": "60.0",
    }


def test_a_field_that_is_text_stays_text() -> None:
    with pytest.raises(BadRequest, match="no model called '8'"):
        request_of("x", "fast", {"model": "8"})
    with pytest.raises(BadRequest, match="Schedule 'nan' is unknown"):
        request_of("x", "fast", {"schedule": "nan"})


# --- what a model may write ---------------------------------------------------------------------


def test_controls_are_shown_and_not_obeyed() -> None:
    shown = inert(HOSTILE + "\n\tend")
    assert shown == "a␛]0;owned␇b␛[31m␦31mc␍␡d\n\tend"
    assert one_line("a\nb\u2028c\td") == "a b c d"


@pytest.mark.parametrize("view", [TextView, JsonView])
def test_no_view_lets_an_escape_through(
    view: type[TextView | JsonView], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    trace = sample_trace(frames=1, length=1)
    outcome = Outcome(Ending.STOPPED, HOSTILE, HOSTILE, 1, 1, Timings())
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw := io.BytesIO(), "ascii", "strict"))
    with view(verbose=True) as shown:
        for event in (trace.header, *trace.frames, outcome):
            shown.show(event)
    printed = raw.getvalue().decode("utf-8")
    complained = capfd.readouterr().err
    for bad in "\x1b\x07\x9b\x7f\r":
        assert bad not in printed
        assert bad not in complained
    if view is JsonView:
        assert json.loads(printed.splitlines()[-1])["text"] == HOSTILE


def test_too_much_on_stdin_is_refused_without_reading_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("x" * (generate_command.MAX_STDIN_CHARACTERS + 10)))
    with pytest.raises(BadRequest, match="shorten it"):
        request_of("-", "fast", {})
    assert sys.stdin.read() == "x" * 10
