"""Whatever is wrong with the database, the app runs, nothing of the user's is touched, and one sentence says why."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event

from playground.runlog import queries
from playground.runlog.database import place_of
from playground.runlog.problems import RunLogError, diagnose
from playground.runlog.rows import RunFilter
from playground.runlog.store import RunStore
from playground.trace import Trace
from tests.runlog.conftest import Cluster, Open
from tests.samples import sample_trace

EVERYONE = RunFilter(limit=None)
UNTIL_RESTART = ", so runs are kept only until restart; "


def _works_in_memory(store: RunStore) -> None:
    store.save(sample_trace(), "ann")
    assert store.flush()
    assert store.load_trace("run-1", "ann") == sample_trace()
    assert not store.persistent


def _is_one_sentence(problem: str | None) -> str:
    assert problem is not None
    assert problem.endswith(".")
    assert ". " not in problem
    assert "\n" not in problem
    return problem


def _wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.05)


@contextmanager
def _nobody() -> Iterator[None]:
    """Root may write anywhere, so it takes off its rights for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone may enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="unmask-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


# --- opening ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"This is somebody's diary, not a database.\n" * 99, b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_a_file_that_is_no_database_is_left_alone(path: Path, open_store: Open, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    store = open_store(path)
    assert _is_one_sentence(store.problem) == (
        f"The run log {path} cannot be read (file is not a database)"
        f"{UNTIL_RESTART}move that file away or set UNMASK_DATABASE to another database."
    )
    _works_in_memory(store)
    store.close()
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_damaged_database_is_left_alone(path: Path, open_store: Open) -> None:
    with RunStore.open(f"sqlite:///{path}") as store:
        store.save(sample_trace(), "ann")
    content = bytearray(path.read_bytes())
    content[100:1000] = b"\xff" * 900
    path.write_bytes(content)
    store = open_store(path)
    assert _is_one_sentence(store.problem).startswith(f"The run log {path} cannot be read (")
    assert "malformed" in str(store.problem)
    _works_in_memory(store)
    store.close()
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_left_alone(path: Path, open_store: Open) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE runs (mine TEXT)")
    store = open_store(path)
    assert _is_one_sentence(store.problem).startswith(f"The run log {path} holds tables of another program (")
    assert str(store.problem).endswith("set UNMASK_DATABASE to a database that the app has to itself.")
    _works_in_memory(store)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]


def test_a_database_of_a_newer_version_is_left_alone(path: Path, open_store: Open) -> None:
    with RunStore.open(f"sqlite:///{path}") as store:
        store.save(sample_trace(run_id="kept"), "ann")
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("UPDATE unmask_version SET version_num = '9999'")
        raw.commit()
    store = open_store(path)
    assert _is_one_sentence(store.problem) == (
        f"The run log {path} was written by a newer version of the app (its schema 9999 is unknown here)"
        f"{UNTIL_RESTART}update the app or set UNMASK_DATABASE to another database."
    )
    _works_in_memory(store)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT id FROM runs").fetchall() == [("kept",)]


def test_a_file_that_may_only_be_read(open_folder: Path, open_store: Open) -> None:
    path = open_folder / "runs.sqlite3"
    RunStore.open(f"sqlite:///{path}").close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with _nobody():
        store = open_store(path)
        assert _is_one_sentence(store.problem).startswith(f"The run log {path} cannot be written (")
        assert str(store.problem).endswith(
            "make the file and its folder writable for the app, or set UNMASK_DATA to another folder."
        )
        _works_in_memory(store)
        store.close()
    open_folder.chmod(0o755)


def test_a_file_that_may_only_be_read_in_a_folder_that_may_be_written(open_folder: Path, open_store: Open) -> None:
    path = open_folder / "runs.sqlite3"
    RunStore.open(f"sqlite:///{path}").close()
    path.chmod(0o444)
    open_folder.chmod(0o777)
    with _nobody():
        store = open_store(path)
        assert "cannot be written (attempt to write a readonly database)" in _is_one_sentence(store.problem)
        _works_in_memory(store)
        store.close()


def test_a_file_opened_for_reading_by_its_url(path: Path, open_store: Open) -> None:
    RunStore.open(f"sqlite:///{path}").close()
    store = open_store(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert _is_one_sentence(store.problem).startswith(
        f"The run log {path} cannot be written (attempt to write a readonly database){UNTIL_RESTART}make the file"
    )
    _works_in_memory(store)


def test_a_folder_that_may_not_be_written(open_folder: Path, open_store: Open) -> None:
    open_folder.chmod(0o555)
    with _nobody():
        for path in (open_folder / "runs.sqlite3", open_folder / "data" / "runs.sqlite3"):
            store = open_store(path)
            assert _is_one_sentence(store.problem).startswith(f"The run log {path} cannot be written (")
            assert "UNMASK_DATA" in str(store.problem)
            _works_in_memory(store)
            store.close()
    open_folder.chmod(0o755)


@pytest.mark.parametrize("where", ["file/runs.sqlite3", "."])
def test_a_path_where_no_file_can_be(tmp_path: Path, open_store: Open, where: str) -> None:
    (tmp_path / "file").write_text("a file")
    store = open_store(tmp_path / where)
    assert _is_one_sentence(store.problem).startswith(f"The run log {tmp_path / where} cannot be written (")
    _works_in_memory(store)
    assert (tmp_path / "file").read_text() == "a file"


def test_a_file_that_another_program_holds(path: Path, open_store: Open) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        store = open_store(path, busy_seconds=0.3)
        assert _is_one_sentence(store.problem) == (
            f"The run log {path} is in use by another program (database is locked)"
            f"{UNTIL_RESTART}close that program, then restart the app."
        )
    _works_in_memory(store)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "UNMASK_DATABASE is not a database URL"),
        ("/data/runs.sqlite3", "UNMASK_DATABASE is not a database URL"),
        ("postgresql://me:hunter2@host:port/runs", "UNMASK_DATABASE is not a database URL"),
        ("mysql://me:hunter2@host/runs", "names the database driver 'mysql', which this app does not have"),
        ("sqlite+aiosqlite:///x", "names the database driver 'sqlite+aiosqlite', which this app does not have"),
        ("nonsense://x", "names the database driver 'nonsense', which this app does not have"),
    ],
)
def test_a_url_that_names_no_database(open_store: Open, caplog: pytest.LogCaptureFixture, url: str, says: str) -> None:
    store = open_store(url)
    problem = _is_one_sentence(store.problem)
    assert says in problem
    assert problem.endswith(
        f"{UNTIL_RESTART}use sqlite:////folder/runs.sqlite3 or postgresql+psycopg://user:password@host/name."
    )
    assert "hunter2" not in problem + caplog.text
    _works_in_memory(store)


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "postgresql", "postgres"])
def test_a_server_that_does_not_answer(open_store: Open, caplog: pytest.LogCaptureFixture, scheme: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with caplog.at_level(logging.DEBUG):
            store = open_store(f"{scheme}://me:hunter2@127.0.0.1:{port}/runs")
    problem = _is_one_sentence(store.problem)
    assert problem.startswith(f"The run log on 127.0.0.1:{port}/runs cannot be reached (connection failed: ")
    assert problem.endswith(f"{UNTIL_RESTART}check that the server runs and that UNMASK_DATABASE names it.")
    assert "hunter2" not in problem + caplog.text
    _works_in_memory(store)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://me:hun@ter2@127.0.0.1:1/runs",
        "postgresql+psycopg://me@127.0.0.1:1/runs?password=hunter2",
        "postgresql+psycopg://me:hunter2@127.0.0.1:1/runs?sslpassword=ter2",
        "postgresql+psycopg://me:hunter2@no%20such host/runs",
    ],
)
def test_no_part_of_a_password_is_shown(open_store: Open, caplog: pytest.LogCaptureFixture, url: str) -> None:
    with caplog.at_level(logging.DEBUG):
        store = open_store(url)
    assert "ter2" not in _is_one_sentence(store.problem) + caplog.text + repr(store) + place_of(url).name
    _works_in_memory(store)


def test_what_a_driver_says_is_searched_for_secrets() -> None:
    place = place_of("postgresql+psycopg://me:hunter2@host/runs?sslpassword=correcthorse")
    said = OSError("connection to postgresql://me:hunter2@host with correcthorse failed")
    assert (
        diagnose(said, place)
        .on_asking()
        .startswith("The run log on host/runs cannot be reached (connection to postgresql://me:…@host with … failed); ")
    )


# --- later --------------------------------------------------------------------------------------


@contextmanager
def _full_disk(store: RunStore) -> Iterator[None]:
    """SQLite's own limit says exactly what it says on a full disk."""
    engine = store._database.writer

    def fill(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA max_page_count=1").fetchall()

    event.listen(engine, "connect", fill)
    engine.dispose()
    yield
    event.remove(engine, "connect", fill)
    engine.dispose()


def test_a_full_disk_costs_no_run(path: Path, open_store: Open) -> None:
    store = open_store(path, retry_seconds=0.2)
    early = [sample_trace(f"early {n}", created=f"2025-01-01T00:0{n}:00Z") for n in range(3)]
    late = [sample_trace(f"late {n}", "x" * 9000, created=f"2025-01-02T00:0{n}:00Z") for n in range(3)]
    for trace in early:
        store.save(trace, "ann")
    assert store.flush()
    with _full_disk(store):
        store.save(late[0], "ann")
        assert store.flush()
        assert _is_one_sentence(store.problem) == (
            f"The run log {path} cannot be written (database or disk is full), so the newest run is kept in memory "
            "and will be written once it works again; free some disk space."
        )
        for trace in late[1:]:
            store.save(trace, "ann")
        assert store.flush()
        assert "the newest 3 runs are kept" in str(store.problem)
        _all_can_be_asked(store, [*early, *late])
    _wait_for(lambda: store.problem is None)
    assert store._ask_kept(lambda session: queries.count(session, EVERYONE), None) == (0, [])
    _all_can_be_asked(store, [*early, *late])
    store.close()
    _all_can_be_asked(open_store(path), [*early, *late])


def _all_can_be_asked(store: RunStore, traces: list[Trace]) -> None:
    newest = [trace.header.run_id for trace in reversed(traces)]
    assert [row.id for row in store.list_runs(EVERYONE)] == newest
    assert [row.id for row in store.list_runs(RunFilter(limit=2, offset=2))] == newest[2:4]
    assert store.count(RunFilter(visitor="ann")) == len(traces)
    assert store.count(RunFilter(visitor="bob")) == 0
    assert store.models("ann") == ["pocket"]
    assert {Trace.from_lines(text).header.run_id for text in store.export_jsonl(RunFilter(limit=1))} == set(newest)
    assert len(list(store.export_csv(RunFilter(limit=1)))) == 1 + len(traces)
    for trace in traces:
        assert store.load_trace(trace.header.run_id, "ann") == trace
        assert store.load_trace(trace.header.run_id, "bob") is None


@contextmanager
def _held(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_a_file_held_for_longer_than_we_wait_costs_no_run(path: Path, open_store: Open) -> None:
    store = open_store(path, busy_seconds=0.1, retry_seconds=0.2)
    with _held(path):
        store.save(sample_trace(), "ann")
        assert store.flush()
        assert "is in use by another program (database is locked), so the newest run is" in str(store.problem)
        assert store.count(EVERYONE) == 1
        with pytest.raises(RunLogError, match="in use by another program"):
            store.delete(["no such run"], "ann")
    _wait_for(lambda: store.problem is None)
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT id FROM runs").fetchall() == [("run-1",)]


def test_a_waiting_run_hides_the_one_it_replaces(path: Path, open_store: Open) -> None:
    store = open_store(path, busy_seconds=0.1)
    store.save(sample_trace(text="first"), "ann")
    assert store.flush()
    with _held(path):
        store.save(sample_trace(text="second"), "ann")
        assert store.flush()
        assert [row.text for row in store.list_runs(EVERYONE)] == ["second"]
        assert store.count(EVERYONE) == 1
        assert len(list(store.export_csv(EVERYONE))) == 2
        assert len(list(store.export_jsonl(EVERYONE))) == 1
    assert store.delete(["run-1"], "ann") == 1
    assert store.count(EVERYONE) == 0
    assert store.load_trace("run-1", "ann") is None


def test_only_so_many_runs_wait(path: Path, open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.runlog.writer.MEMORY_RUNS", 3)
    store = open_store(path, busy_seconds=0.1)
    with _held(path):
        for n in range(6):
            store.save(sample_trace(str(n), created=f"2025-01-01T00:0{n}:00Z"), "ann")
        assert store.flush()
        assert "the newest 3 runs are kept" in str(store.problem)
        assert [row.id for row in store.list_runs(EVERYONE)] == ["5", "4", "3"]


def test_closing_tries_once_more_and_says_what_is_lost(
    path: Path, open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(path, busy_seconds=0.1)
    with _held(path):
        store.save(sample_trace("written at last"), "ann")
        assert store.flush()
    store.close()
    store = open_store(path, busy_seconds=0.1)
    assert store.count(EVERYONE) == 1
    with _held(path):
        store.save(sample_trace("lost"), "ann")
        caplog.clear()
        store.close()
    assert "so they are lost" in caplog.text


def test_a_question_that_cannot_be_answered_is_one_sentence(path: Path, open_store: Open) -> None:
    store = open_store(path)
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DROP TABLE traces")
        raw.execute("DROP TABLE runs")
    for ask in (store.list_runs, store.count, lambda wanted: list(store.export_csv(wanted))):
        with pytest.raises(RunLogError) as caught:
            ask(EVERYONE)
        assert _is_one_sentence(str(caught.value)) == (
            f"The run log {path} lacks tables that the app made (no such table: runs); "
            "restart the app, or set UNMASK_DATABASE to another database."
        )
    store.save(sample_trace(), "ann")
    assert store.flush()
    assert [row.id for row in store.list_runs(EVERYONE)] == ["run-1"]


def test_a_defect_in_one_job_does_not_stop_the_writer(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a defect")

    with monkeypatch.context() as patch:
        patch.setattr(store._writer, "_save", broken)
        store.save(sample_trace("first"), "ann")
        assert store.flush()
    store.save(sample_trace("second"), "ann")
    assert store.flush()
    assert [row.id for row in store.list_runs(EVERYONE)] == ["second"]
    assert "A job of the run log failed" in caplog.text


# --- PostgreSQL ---------------------------------------------------------------------------------


@pytest.mark.postgres
def test_postgres_refusals_are_one_sentence(
    cluster: Cluster, open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(cluster.url("postgres", password="hunter2"))
    assert _is_one_sentence(store.problem).startswith(
        f"The run log on 127.0.0.1:{cluster.port}/postgres refuses the app ("
    )
    assert "hunter2" not in str(store.problem) + caplog.text
    store = open_store(cluster.url("nowhere"))
    assert 'database "nowhere" does not exist' in _is_one_sentence(store.problem)
    assert "correct user, password and database name" in str(store.problem)
    _works_in_memory(store)


@pytest.mark.postgres
def test_postgres_that_takes_no_writes(cluster: Cluster, open_store: Open) -> None:
    url = cluster.fresh_url()
    open_store(url).close()
    store = open_store(f"{url}%20-cdefault_transaction_read_only%3Don")
    assert "cannot be written (cannot execute UPDATE in a read-only transaction)" in _is_one_sentence(store.problem)
    assert str(store.problem).endswith("let its database user create and change tables.")
    _works_in_memory(store)


@pytest.mark.postgres
def test_postgres_refuses_one_run_and_takes_the_next(cluster: Cluster, open_store: Open) -> None:
    store = open_store(cluster.fresh_url())
    incompressible = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(9_000))
    store.save(sample_trace("bad"), incompressible)
    assert store.flush()
    assert _is_one_sentence(store.problem).startswith("Run bad cannot be recorded (index row ")
    store.save(sample_trace("good"), "ann")
    assert store.flush()
    assert store.problem is None
    assert [row.id for row in store.list_runs(EVERYONE)] == ["good"]


@pytest.mark.postgres
def test_postgres_may_restart_without_costing_a_run(cluster: Cluster, open_store: Open) -> None:
    url = cluster.fresh_url()
    store = open_store(url, retry_seconds=0.3)
    early, late = sample_trace("early"), sample_trace("late", created="2025-07-01T00:00:00Z")
    store.save(early, "ann")
    assert store.flush()
    cluster.stop()
    try:
        with pytest.raises(RunLogError, match=r"cannot be reached .*check that the server runs"):
            store.list_runs(EVERYONE)
        store.save(late, "ann")
        assert store.flush()
        assert "cannot be reached" in _is_one_sentence(store.problem)
        assert [row.id for row in store.list_runs(EVERYONE)] == ["late"], "what we have is shown meanwhile"
        assert (store.count(EVERYONE), store.models(None)) == (1, ["pocket"])
        assert len(list(store.export_jsonl(EVERYONE))) == 1
    finally:
        cluster.start()
    _wait_for(lambda: store.problem is None)
    _all_can_be_asked(store, [early, late])
    store.close()
    _all_can_be_asked(open_store(url), [early, late])


@pytest.mark.postgres
def test_postgres_that_drops_idle_connections(cluster: Cluster, open_store: Open) -> None:
    store = open_store(cluster.fresh_url())
    store.save(sample_trace("first"), "ann")
    assert store.flush()
    cluster.stop()
    cluster.start()
    assert store.count(EVERYONE) == 1
    store.save(sample_trace("second"), "ann")
    assert store.flush()
    assert store.problem is None
    assert store.count(EVERYONE) == 2
