"""Runs are saved once, whole and in the background, whoever else uses the file."""

from __future__ import annotations

import gc
import logging
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from playground.runlog.rows import RunFilter
from playground.runlog.store import RunStore
from playground.trace import Result
from tests.runlog.conftest import Open
from tests.samples import sample_trace

EVERYONE = RunFilter(limit=None)
ROOT = Path(__file__).resolve().parents[2]

HOSTILE = [
    "'; DROP TABLE runs; --",
    "quotes \" and ' and `",
    "100% _under_ \\back\\slash",
    "👩‍👩‍👧 emoji and 𝒻𝒶𝓃𝒸𝓎",
    "שלום مرحبا \u202eright to left",
    "<script>alert(1)</script>",
    "${process.exit()} {{value}} %s %(x)s",
    "line\nbreak\ttab \u2028 separator",
    "=HYPERLINK(1)",
]


def test_a_run_comes_back_as_it_was(store: RunStore) -> None:
    trace = sample_trace(frames=6, note="recorded")
    store.save(trace, "ann")
    assert store.flush()
    assert store.load_trace("run-1", "ann") == trace
    (row,) = store.list_runs(RunFilter(visitor="ann"))
    assert (row.id, row.model, row.schedule, row.block, row.forwards) == ("run-1", "pocket", "even", 4, 6)
    assert row.created.isoformat() == "2025-06-01T12:00:00+00:00"
    assert row.first_canvas_seconds == pytest.approx(0.08)
    assert store.problem is None
    assert store.persistent


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_stored_letter_by_letter(store: RunStore, text: str) -> None:
    trace = sample_trace(run_id=text, prompt=text, text=text, model=text, model_name=text, message=text)
    store.save(trace, text)
    assert store.flush()
    assert store.load_trace(text, text) == trace
    (row,) = store.list_runs(RunFilter(visitor=text, model=text))
    assert (row.prompt, row.text, row.message, row.model_name) == (trace.header.prompt, text, text, text)
    assert store.models(text) == [text]
    assert store.delete([text], text) == 1


def test_what_a_model_says_may_be_no_text(store: RunStore) -> None:
    trace = sample_trace(text="nul \0 and half a pair \ud83d")
    store.save(trace, "ann")
    assert store.flush()
    assert store.load_trace("run-1", None) == sample_trace(text="nul \0 and half a pair \ufffd")
    assert store.list_runs(EVERYONE)[0].text == "nul  and half a pair \ufffd"


def test_saving_again_replaces(store: RunStore) -> None:
    store.save(sample_trace(frames=2, result=None), "ann")
    store.save(sample_trace(frames=8, text="second"), "ann")
    assert store.flush()
    (row,) = store.list_runs(EVERYONE)
    assert (row.text, row.forwards, row.result) == ("second", 8, "finished")
    assert store.load_trace("run-1", None) == sample_trace(frames=8, text="second")


@pytest.mark.parametrize("result", [*Result, None])
def test_a_run_is_kept_however_it_ended(store: RunStore, result: Result | None) -> None:
    trace = sample_trace(frames=3, result=result, message="why")
    store.save(trace, "ann")
    assert store.flush()
    (row,) = store.list_runs(EVERYONE)
    assert row.result == (result.value if result else "")
    assert row.forwards == 3
    assert store.load_trace("run-1", None) == trace


def test_a_run_of_another_kind_may_lack_settings(store: RunStore) -> None:
    trace = sample_trace(mode="remote", frames=0)
    trace.header.request.clear()
    trace.header.request["temperature"] = True
    store.save(trace, "ann")
    assert store.flush()
    (row,) = store.list_runs(EVERYONE)
    assert (row.schedule, row.steps, row.temperature, row.first_canvas_seconds) == (None, None, None, None)


def test_frames_that_come_after_saving_are_not_stored(store: RunStore) -> None:
    trace = sample_trace(frames=2, result=None)
    more = sample_trace(frames=3, result=None).frames[2]
    store.save(trace, "ann")
    trace.append(more)
    assert store.flush()
    assert store.load_trace("run-1", None) == sample_trace(frames=2, result=None)


def test_runs_outlive_the_process_that_saved_them(path: Path, open_store: Open) -> None:
    with RunStore.open(f"sqlite:///{path}") as first:
        first.save(sample_trace(), "ann")
    assert open_store(path).load_trace("run-1", "ann") == sample_trace()


def test_closing_writes_what_is_queued_and_refuses_more(
    path: Path, open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(path)
    for number in range(50):
        store.save(sample_trace(run_id=str(number)), "ann")
    store.close()
    store.close()
    with caplog.at_level(logging.WARNING):
        store.save(sample_trace(run_id="late"), "ann")
    assert "late is not recorded" in caplog.text
    assert store.flush(1)
    assert open_store(path).count(EVERYONE) == 50


def test_runs_are_written_even_if_nobody_closes_the_store(path: Path, open_store: Open) -> None:
    program = (
        "import sys; from playground.runlog.store import RunStore; from tests.samples import sample_trace\n"
        "store = RunStore.open(sys.argv[1])\n"
        "for n in range(20): store.save(sample_trace(run_id=str(n)), 'ann')\n"
    )
    subprocess.run(
        [sys.executable, "-W", "error", "-c", program, f"sqlite:///{path}"], check=True, timeout=60, cwd=ROOT
    )
    assert open_store(path).count(EVERYONE) == 20


def test_a_run_that_json_cannot_hold_is_named_and_the_next_is_saved(store: RunStore) -> None:
    store.save(sample_trace(run_id="bad", model_seconds=float("nan")), "ann")
    assert store.flush()
    assert store.problem is not None
    assert store.problem.startswith("Run bad cannot be recorded (")
    store.save(sample_trace(run_id="good"), "ann")
    assert store.flush()
    assert store.problem is None
    assert [row.id for row in store.list_runs(EVERYONE)] == ["good"]


def test_many_threads_save_while_others_read(store: RunStore) -> None:
    saving = threading.Event()
    saving.set()

    def save(thread: int) -> None:
        for number in range(25):
            store.save(sample_trace(run_id=f"{thread}-{number}", prompt=f"prompt {number}"), f"visitor {thread}")

    def read() -> int:
        seen = 0
        while saving.is_set():
            now = store.count(EVERYONE)
            assert now >= seen, "a run that could be read has gone"
            seen = now
            for row in store.list_runs(RunFilter(search="prompt", limit=3)):
                assert store.load_trace(row.id, None) is not None
        return seen

    with ThreadPoolExecutor(10) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(save, thread) for thread in range(8)]
        try:
            for done in writers:
                done.result(60)
            assert store.flush(60)
        finally:
            saving.clear()
        for reader in readers:
            reader.result(60)
    assert store.problem is None
    assert store.count(EVERYONE) == 200
    assert all(store.count(RunFilter(visitor=f"visitor {thread}")) == 25 for thread in range(8))


def test_saving_does_not_wait_for_another_process_that_writes(path: Path, open_store: Open) -> None:
    store = open_store(path)
    program = (
        "import sqlite3, sys, time\n"
        "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "held.execute('BEGIN IMMEDIATE'); print('held', flush=True); time.sleep(1); held.execute('COMMIT')"
    )
    with subprocess.Popen([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        began = time.monotonic()
        store.save(sample_trace(), "ann")
        assert time.monotonic() - began < 0.2
        assert store.count(EVERYONE) == 0, "a reader had to wait, or saw what is not written"
        assert store.flush(20)
        assert time.monotonic() - began > 0.5
        assert store.problem is None
        assert store.count(EVERYONE) == 1


def test_two_processes_may_open_a_new_file_at_once(path: Path, open_store: Open) -> None:
    program = (
        "import sys; from playground.runlog.store import RunStore; from tests.samples import sample_trace\n"
        "with RunStore.open(sys.argv[1]) as store:\n"
        "    store.save(sample_trace(run_id=sys.argv[2]), 'ann'); store.flush(); assert not store.problem"
    )
    command = [sys.executable, "-c", program, f"sqlite:///{path}"]
    processes = [subprocess.Popen([*command, str(number)], cwd=ROOT) for number in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert open_store(path).count(EVERYONE) == 3


def test_the_file_is_set_up_for_one_writer_and_many_readers(path: Path, open_store: Open) -> None:
    store = open_store(path)
    store._database.writer.dispose()  # every connection is set up so, not only the one that migrated
    with store._database.writer.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "busy_timeout": 10_000}
    with store._database.reader.connect() as connection, pytest.raises(Exception, match="readonly"):
        connection.exec_driver_sql("DELETE FROM runs")


def test_on_spaces_one_connection_does_everything(
    path: Path, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunStore.open(f"sqlite:///{path}") as elsewhere:  # leaves a file in WAL mode
        elsewhere.save(sample_trace(run_id="before"), "ann")
    monkeypatch.setenv("SYSTEM", "spaces")
    store = open_store(path)
    assert store._database.reader is store._database.writer
    with store._database.writer.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
        assert connection.exec_driver_sql("PRAGMA locking_mode").scalar() == "exclusive"
    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            pool.submit(store.save, sample_trace(run_id=str(number)), "ann")
        counts = [pool.submit(store.count, EVERYONE) for _ in range(20)]
        assert all(0 <= count.result(30) <= 21 for count in counts)
    assert store.flush()
    assert store.count(EVERYONE) == 21
    assert not path.with_name(path.name + "-wal").exists()
    assert store.problem is None


def test_a_database_in_memory_can_be_asked_for(open_store: Open) -> None:
    store = open_store("sqlite://")
    store.save(sample_trace(), "ann")
    assert store.flush()
    assert store.count(EVERYONE) == 1
    assert store.problem is None
    assert not store.persistent


def test_memory_holds_the_newest_runs_only(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.runlog.writer.MEMORY_RUNS", 5)
    store = open_store("sqlite://")
    for minute in range(9):
        store.save(sample_trace(run_id=str(minute), created=f"2025-01-01T00:0{minute}:00Z"), "ann")
    assert store.flush()
    assert [row.id for row in store.list_runs(EVERYONE)] == ["8", "7", "6", "5", "4"]


def test_nothing_is_left_open_after_closing(path: Path) -> None:
    threads = threading.active_count()
    with RunStore.open(f"sqlite:///{path}") as store:
        store.save(sample_trace(), "ann")
        store.flush()
        store.count(EVERYONE)
    gc.collect()
    assert threading.active_count() == threads
    # The last connection that closes tidies up the write-ahead log.
    assert sorted(file.name for file in path.parent.iterdir()) == ["runs.sqlite3"]
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_folder_may_have_any_name(tmp_path: Path, open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "ein Ordner, 'ü' 😀 #1"
    store = open_store(folder / "runs.sqlite3")
    assert store.problem is None
    assert (folder / "runs.sqlite3").exists()
    monkeypatch.chdir(tmp_path)
    assert open_store("sqlite:///relative/runs.sqlite3").problem is None
    assert (tmp_path / "relative" / "runs.sqlite3").exists()
