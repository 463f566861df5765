"""Bring a database to the current schema, from inside the program (there is no alembic.ini).

Everything happens in the caller's transaction (`Database.migrating`), so a migration that fails leaves the
database as it was.
To write a new migration, change `tables.py` and call `new_revision`. This module must not know queries.
"""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from playground.runlog import database
from playground.runlog.problems import NewerSchemaError

FOLDER = Path(__file__).resolve().parent / "migrations"
VERSION_TABLE = "unmask_version"
"""Not Alembic's usual name: a PostgreSQL database may be shared with another program that uses Alembic."""

# Alembic keeps the running migration in module globals.
_ONE_AT_A_TIME = threading.Lock()
# Any number, as long as every process of the app uses the same.
_POSTGRES_LOCK = 7_266_530_114


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the migrations that `connection`'s database lacks.

    Raises:
        NewerSchemaError: the database has a migration that this version does not know.
    """
    with _ONE_AT_A_TIME:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _POSTGRES_LOCK})
        config = _config(connection)
        script = ScriptDirectory.from_config(config)
        known = {step.revision for step in script.walk_revisions()}
        current = _current(connection)
        if unknown := [revision for revision in current if revision not in known]:
            raise NewerSchemaError(unknown[0])
        if revision != "head" or set(current) != set(script.get_heads()):
            command.upgrade(config, revision)
        elif current:
            # A database that takes no writes must be noticed now and not at the first run; SQLite turns BEGIN
            # IMMEDIATE on a file that it may only read into a reading transaction without a word.
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = version_num"))


def downgrade(connection: Connection, revision: str) -> None:
    """Undo migrations down to `revision`; "base" undoes all, and with them every run."""
    with _ONE_AT_A_TIME:
        command.downgrade(_config(connection), revision)


def new_revision(message: str) -> None:
    """Write the next file of migrations/versions/ from what `tables.py` has and the migrations lack."""
    scratch = database.in_memory()
    try:
        with scratch.migrating() as connection:
            upgrade(connection)
            with _ONE_AT_A_TIME:
                config = _config(connection)
                number = len(list(ScriptDirectory.from_config(config).walk_revisions())) + 1
                command.revision(config, message, autogenerate=True, rev_id=f"{number:04}")
    finally:
        scratch.close()


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    return config


def _current(connection: Connection) -> tuple[str, ...]:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return tuple(context.get_current_heads())
