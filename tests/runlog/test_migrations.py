"""The migrations make exactly the tables that the program uses, from inside the program and all or nothing."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from playground.runlog import migrate
from playground.runlog.database import Database, connect
from playground.runlog.rows import COLUMNS
from playground.runlog.tables import Base, Run
from tests.runlog.conftest import Cluster, Open
from tests.samples import sample_trace


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        url = f"sqlite:///{path}"
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        url = cluster.fresh_url()
    database = connect(url, 5)
    yield database
    database.close()


def _tables(database: Database) -> set[str]:
    with database.writer.connect() as connection:
        return set(inspect(connection).get_table_names())


def test_the_migrated_schema_is_the_one_in_the_program(database: Database) -> None:
    with database.migrating() as connection:
        migrate.upgrade(connection)
        options = {"version_table": migrate.VERSION_TABLE, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_upgrade_and_downgrade_work_from_empty_and_again(database: Database) -> None:
    for _ in range(2):
        with database.migrating() as connection:
            migrate.upgrade(connection)
            migrate.upgrade(connection)
        assert _tables(database) == {"runs", "traces", migrate.VERSION_TABLE}
        with database.migrating() as connection:
            migrate.downgrade(connection, "base")
        assert _tables(database) == {migrate.VERSION_TABLE}


def test_a_migration_that_fails_leaves_nothing_behind(database: Database) -> None:
    with database.writer.begin() as connection:
        connection.execute(text("CREATE TABLE traces (mine INTEGER)"))
    with pytest.raises(Exception, match="already exists"), database.migrating() as connection:
        migrate.upgrade(connection)
    assert _tables(database) == {"traces"}


def test_rebuilding_the_runs_table_keeps_the_traces(path: Path, open_store: Open) -> None:
    store = open_store(path)
    store.save(sample_trace(), "ann")
    assert store.flush()
    with store._database.migrating() as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("runs", recreate="always") as batch:
            batch.alter_column("message", new_column_name="message")
    assert store.load_trace("run-1", "ann") == sample_trace()
    assert store.delete(["run-1"], "ann") == 1
    with closing(sqlite3.connect(path)) as raw:
        assert raw.execute("SELECT count(*) FROM traces").fetchone() == (0,)


def test_migrations_do_not_depend_on_the_folder_or_touch_logging(
    tmp_path: Path, path: Path, open_store: Open, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    other = logging.getLogger("someone.else")
    assert open_store(path).problem is None
    assert (root.handlers, root.level, other.disabled) == (handlers, level, False)
    assert capfd.readouterr() == ("", "")


def test_every_migration_is_in_one_line_of_numbers() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrate.FOLDER))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)
    steps = [step.revision for step in script.walk_revisions()]
    assert steps == [f"{number:04}" for number in range(len(steps), 0, -1)]
    # A migration must keep working when the classes of the program have moved on.
    for file in (migrate.FOLDER / "versions").glob("*.py"):
        assert not re.search(r"\bplayground\b", file.read_text())


def test_a_new_migration_is_written_from_the_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "100% new" / "migrations"
    (folder / "versions").mkdir(parents=True)
    for name in ("env.py", "script.py.mako"):
        (folder / name).write_text((migrate.FOLDER / name).read_text())
    monkeypatch.setattr(migrate, "FOLDER", folder)
    migrate.new_revision("all tables")
    (file,) = (folder / "versions").glob("*.py")
    assert file.name == "0001_all_tables.py"
    assert "sa.DateTime(timezone=True)" in file.read_text()


def test_lists_show_columns_that_exist() -> None:
    assert set(COLUMNS) == set(Run.__table__.columns.keys()) - {"visitor", "request", "versions"}
