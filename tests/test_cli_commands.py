"""The other commands: models, runs, serve, bench, and the help of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from playground.cli import bench, serve
from playground.cli.bench_tables import machine_line, table_of
from playground.cli.main import app
from playground.cli.memory import available_gib
from playground.cli.terminal import PlainConsole
from playground.denoisers.catalogue import CATALOGUE
from playground.labs import bench as labs_bench
from playground.labs.bench_results import (
    BatchResult,
    CacheResult,
    ForwardResult,
    Machine,
    PageResult,
    PlayerResult,
    PlayerSizeResult,
    Report,
    RunResult,
    Spread,
    StartupResult,
)
from playground.runlog.store import RunStore
from playground.settings import Settings, get_settings
from tests.samples import sample_trace

COMMANDS = ("generate", "models", "runs", "export", "show", "serve", "record", "bench")


def call(*arguments: str, columns: int = 120) -> Result:
    """Run a command line."""
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": str(columns)})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where this process keeps its run log."""
    monkeypatch.setenv("UNMASK_DATA", str(tmp_path))
    get_settings.cache_clear()
    yield tmp_path
    get_settings.cache_clear()


# --- help ---------------------------------------------------------------------------------------


def test_help_lists_every_command() -> None:
    result = call("--help")
    assert result.exit_code == 0
    assert all(f" {command} " in result.stdout for command in COMMANDS)


def test_no_command_shows_the_help() -> None:
    assert "Commands" in call().stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("columns", [60, 120])
def test_help_of_each_command(command: str, columns: int) -> None:
    result = call(command, "--help", columns=columns)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= columns
    for leak in ("[dim]", "[/dim]", "[bold]", "\\["):
        assert leak not in result.stdout


def test_options_of_generate_stand_in_panels() -> None:
    shown = call("generate", "--help").stdout
    at = [shown.index(f"─ {panel} ") for panel in ("Canvas", "Order", "Sampling", "Ending", "Output")]
    assert at == sorted(at)
    assert "[default: 0.2]" in shown
    assert "Exit codes" in shown


def test_an_unknown_command_is_one_sentence() -> None:
    result = call("generat")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "generat" in result.stderr


# --- models -------------------------------------------------------------------------------------


def test_models_lists_the_catalogue() -> None:
    shown = call("models", columns=160).stdout
    for name, entry in CATALOGUE.items():
        for fact in (name, entry.parameters, entry.licence, f"{entry.context_limit:,}"):
            assert fact in shown


def test_models_as_json() -> None:
    listed = json.loads(call("models", "--json").stdout)
    assert [model["model_id"] for model in listed] == list(CATALOGUE)
    assert all(model["fits"] in {True, False, None} for model in listed)


@pytest.mark.parametrize(
    ("files", "gib"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    2097152 kB\n"}, 2.0),
        ({"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5\n"}, None),
        (
            {
                "proc/meminfo": "MemAvailable:    8388608 kB\n",
                "sys/fs/cgroup/memory.max": f"{4 * 1024**3}\n",
                "sys/fs/cgroup/memory.current": f"{3 * 1024**3}\n",
                "sys/fs/cgroup/memory.stat": f"anon 7\ninactive_file {1024**3}\n",
            },
            2.0,
        ),
        (
            {
                "sys/fs/cgroup/memory.max": "10",
                "sys/fs/cgroup/memory.current": "20",
            },
            0.0,
        ),
    ],
)
def test_free_memory_minds_the_container(tmp_path: Path, files: dict[str, str], gib: float | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert available_gib(tmp_path) == gib


# --- runs ---------------------------------------------------------------------------------------


def keep(folder: Path) -> None:
    """Two runs in the run log."""
    with RunStore.open(Settings(data=folder, database="").database_url) as store:
        store.save(sample_trace("old", "About rain", created="2025-06-01T12:00:00Z"), "someone")
        store.save(sample_trace("new", "About owls", text="hoot\x1b[31m [bold]", created="2025-06-02T12:00:00Z"), "")
        store.flush()


def test_runs_lists_the_newest_first_and_inert(folder: Path) -> None:
    keep(folder)
    shown = call("runs").stdout
    assert shown.index("About owls") < shown.index("About rain")
    assert "\x1b" not in shown
    assert "[bold]" in shown


def test_runs_narrow_terminals_keep_when_and_result(folder: Path) -> None:
    keep(folder)
    shown = call("runs", columns=70).stdout
    assert "2025-06-02" in shown
    assert "finished" in shown


def test_runs_as_json_searched_and_limited(folder: Path) -> None:
    keep(folder)
    assert [run["id"] for run in json.loads(call("runs", "--json").stdout)] == ["new", "old"]
    assert [run["id"] for run in json.loads(call("runs", "--json", "--search", "RAIN").stdout)] == ["old"]
    assert [run["id"] for run in json.loads(call("runs", "--json", "--limit", "1").stdout)] == ["new"]
    assert json.loads(call("runs", "--json", "--search", "nothing").stdout) == []


def test_no_runs_is_said(folder: Path) -> None:
    result = call("runs")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "There are no runs yet.\n", "")
    assert call("runs", "--search", "x").stdout == "No run matches.\n"


def test_a_run_log_that_cannot_be_read_is_one_sentence(folder: Path) -> None:
    (folder / "runs.sqlite3").write_bytes(b"not a database, for sure" * 100)
    result = call("runs")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert "cannot be read" in result.stderr


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1e9"])
def test_a_bad_limit_is_one_sentence(folder: Path, limit: str) -> None:
    result = call("runs", "--limit", limit)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "--limit" in result.stderr


# --- serve --------------------------------------------------------------------------------------


def test_serve_hands_host_and_port_to_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[tuple[str | None, int | None]] = []
    monkeypatch.setattr(serve, "_main_of_app", lambda: lambda host, port: served.append((host, port)))
    assert call("serve").exit_code == 0
    assert call("serve", "--host", "0.0.0.0", "--port", "8123").exit_code == 0
    assert served == [(None, None), ("0.0.0.0", 8123)]


def test_serve_says_when_the_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def main(host: str | None, port: int | None) -> None:
        raise OSError("Cannot find empty port in range: 80-80.")

    monkeypatch.setattr(serve, "_main_of_app", lambda: main)
    result = call("serve", "--port", "80")
    assert result.exit_code == 1
    assert "port 80" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("port", ["0", "65536", "http", "nan"])
def test_a_bad_port_is_one_sentence(port: str) -> None:
    result = call("serve", "--port", port)
    assert result.exit_code == 2
    assert "--port" in result.stderr
    assert result.stderr.count("\n") == 1


# --- bench --------------------------------------------------------------------------------------


def test_the_parts_named_in_the_help_are_those_that_there_are() -> None:
    assert bench.PARTS == labs_bench.PARTS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "gpu"], "There is no part called 'gpu'; choose from startup"),
        (["--only", ","], "Nothing is left to measure"),
        (["--repeats", "0"], "Invalid value for '--repeats'"),
        (["--steps", "x"], "Invalid value for '--steps'"),
        (["--steps", "0", "--only", "run"], "Steps must be from 1 to 1024"),
        (["--length", "9999", "--only", "run"], "Length must be from 1 to 1024"),
        (["--block", "-1", "--only", "run"], "Block must be from 0 to 1024"),
    ],
)
def test_a_bad_benchmark_is_one_sentence(arguments: list[str], said: str) -> None:
    result = call("bench", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("only", "page", "player", "parts"),
    [
        ("forward", False, False, {"forward"}),
        (" cache , batch,", True, False, {"cache", "batch", "page"}),
        (None, False, False, set(bench.PARTS) - {"page", "player"}),
        (None, True, False, set(bench.PARTS) - {"player"}),
        (None, False, True, {"player"}),
        (None, True, True, set(bench.PARTS)),
        ("cache", False, True, {"cache", "player"}),
    ],
)
def test_parts_can_be_chosen(only: str | None, page: bool, player: bool, parts: set[str]) -> None:
    assert bench.parts_of(only, page=page, player=player) == parts


def full_report() -> Report:
    """A report with every part."""
    one, few = Spread.of([2.0]), Spread.of([1.0, 2.0, 3.0])
    return Report(
        created="2025-06-01T12:00:00+00:00",
        machine=Machine("cpu", "float32", 2, {"torch": "2"}, 0.5, 1.5),
        repeats=3,
        forward=(ForwardResult(32, 64, 8.9, few, few, few, few, few, few),),
        cache=CacheResult(64, 64, 16, 64, few, few, few, False),
        run=RunResult(20, 128, 8, 0, 8, 128, 16.0, few, few, few, one, few, few),
        batch=BatchResult(8, 32, 16, few, few, few, few, few, 7),
        startup=StartupResult(few, few, few, one, one),
        page=PageResult(64, 64, few, few, few, few, few, few, few, few, True),
        player=PlayerResult(
            512, 128, few, few, 0, 120, few, few, scrub_ms=few, exports=(PlayerSizeResult(48, 48, 10_240, 5_120, 99.5),)
        ),
    )


def test_every_part_has_its_table() -> None:
    console = PlainConsole(width=140)
    report = full_report()
    with console.capture() as shown:
        for part in bench.PARTS:
            console.print(table_of(getattr(report, part)))
        console.print(machine_line(report.machine, report.repeats))
    printed = shown.get()
    for words in (
        "Start-up",
        "One forward",
        "A run of 128",
        "Cache",
        "Batch",
        "Page",
        "NO",
        "7 of 8 runs",
        "1.00 s to",
    ):
        assert words in printed


def test_a_report_is_json() -> None:
    body = json.loads(json.dumps(full_report().body()))
    assert body["cache"]["ratio"] == {"median": 2.0, "low": 1.0, "high": 3.0, "count": 3}
