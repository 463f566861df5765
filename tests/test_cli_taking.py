"""`export` and `show`: runs from the log and from files, every format, and one sentence for what cannot be."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from playground.cli.main import app
from playground.export import read_traces
from playground.export.formats import FORMATS
from playground.runlog.store import RunStore
from playground.settings import ROOT, Settings, get_settings
from playground.trace import Trace
from tests.samples import sample_trace


def call(*arguments: str, given: bytes | None = None) -> Result:
    """Run a command line."""
    return CliRunner().invoke(app, list(arguments), input=given, env={"COLUMNS": "120"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, whose run log has two runs."""
    monkeypatch.setenv("UNMASK_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    get_settings.cache_clear()
    with RunStore.open(Settings(data=tmp_path / "data", database="").database_url) as store:
        store.save(old(), "someone")
        store.save(sample_trace("new", "About owls!", created="2025-06-02T12:00:00Z"), "")
        store.flush()
    yield tmp_path
    get_settings.cache_clear()


def old() -> Trace:
    """The run called "old"."""
    return sample_trace("old", "About rain", created="2025-06-01T12:00:00Z", text="drip\x1b[31m")


def test_help_says_what_each_format_is_good_for() -> None:
    shown = " ".join(call("export", "--help").stdout.replace("│", " ").split())
    for name, known in FORMATS.items():
        assert f"{name}: {known.sentence}" in shown


def test_help_draws_nothing() -> None:
    """Pillow is loaded for pictures only."""
    code = "import sys, playground.cli.main; print('PIL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_written_and_said(folder: Path, name: str) -> None:
    result = call("export", "old", "--as", name)
    assert result.exit_code == 0, result.stderr
    path = folder / result.stdout.strip()
    assert path.name == f"unmask-about-rain-old.{FORMATS[name].suffix}"
    data = path.read_bytes()
    if name in ("html", "jsonl"):
        assert read_traces(data) == [old()]
    elif name in ("gif", "png"):
        assert Image.open(io.BytesIO(data)).format == name.upper()
    else:
        assert data.startswith(b"step,block" if name == "csv" else b"drip")


def test_last_is_the_newest_and_the_output_decides_the_format(folder: Path) -> None:
    assert call("export", "last", "-o", "here.jsonl").stdout == "here.jsonl\n"
    (trace,) = read_traces(Path("here.jsonl").read_bytes())
    assert trace.header.run_id == "new"
    assert call("export", "here.jsonl", "-o", "-", "--as", "text").stdout.startswith(" word0 word1")


def test_a_step_of_a_picture(folder: Path) -> None:
    for step in ("0", "2"):
        assert call("export", "old", "-o", f"{step}.png", "--step", step).exit_code == 0
    assert Path("0.png").read_bytes() != Path("2.png").read_bytes()


def test_export_import_export_is_the_identity(folder: Path) -> None:
    call("export", "old", "-o", "one.jsonl")
    call("export", "one.jsonl", "-o", "two.html")
    call("export", "two.html", "-o", "three.jsonl")
    assert Path("three.jsonl").read_bytes() == Path("one.jsonl").read_bytes()


def test_standard_input_and_files_of_several_runs(folder: Path) -> None:
    both = (sample_trace("a", text="first").to_lines() + sample_trace("b", text="second").to_lines()).encode()
    result = call("show", "-", given=both)
    assert result.stdout == "first\n"
    assert "holds 2 runs" in result.stderr
    assert call("show", "-", "--run", "2", given=both).stdout == "second\n"
    assert call("show", "-", "--run", "3", given=both).exit_code == 2


def test_show_prints_text_figures_and_steps_inert(folder: Path) -> None:
    result = call("show", "old")
    assert result.stdout == "drip␛[31m\n"
    assert "About rain" in result.stderr
    assert "8 tokens in 4 forwards" in result.stderr
    half = call("show", "old", "--step", "2")
    assert half.stdout == " word0 word1 word2 word3▒▒▒▒\n"
    assert "Step 2 of 4, 4 masks left." in half.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("export", "nobody"), "There is no run and no file called 'nobody'"),
        (("show", "gone.jsonl"), "gone.jsonl cannot be read"),
        (("show", "notes.txt"), "notes.txt is not a trace"),
        (("export", "old", "--as", "pdf"), "There is no format called 'pdf'"),
        (("export", "old", "-o", "run.pdf"), "choose a format with --as"),
        (("export", "old", "--step", "9", "--as", "png"), "There is no step 9; this run has steps 0 to 4."),
        (("show", "old", "--step", "9"), "There is no step 9"),
        (("show", "."), "cannot be read"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (folder / "notes.txt").write_text("Dear diary")
    result = call(*arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_place_that_cannot_be_written(folder: Path) -> None:
    result = call("export", "old", "-o", "nowhere/run.html")
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


def test_no_runs_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNMASK_DATA", str(tmp_path))
    get_settings.cache_clear()
    assert "There are no runs yet" in call("export", "last").stderr
    get_settings.cache_clear()
