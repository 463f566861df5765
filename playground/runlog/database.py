"""Opening a database: URLs, engines, pools and SQLite's pragmas. It must not know tables or queries.

SQLite gets one writing connection, because a second one would only wait, and reading connections that see
finished writes while the writer works (write-ahead log). Two cases share one connection for everything: a
database in memory, which exists only in its connection, and a Hugging Face bucket, whose mount knows neither
shared memory nor dependable locks. A pool of one makes its users take turns, where SQLAlchemy's `StaticPool`
would let two threads into one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event, exc, make_url

from playground.runlog.problems import Place, UnusableError

_EXAMPLES = "use sqlite:////folder/runs.sqlite3 or postgresql+psycopg://user:password@host/name"
_POOL_OF_ONE: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
_CONNECT_SECONDS = 5


@dataclass(frozen=True)
class Database:
    """One database: `writer` is for the writing thread, `reader` for everyone; they may be the same engine."""

    place: Place
    writer: Engine
    reader: Engine
    in_memory: bool = False

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """A connection in one transaction, in which tables may be rebuilt."""
        with self.writer.connect() as connection:
            sqlite = self.writer.dialect.name == "sqlite"
            raw: Any = connection.connection.driver_connection
            if sqlite:
                # SQLite alters a table by copying and dropping it, and a drop would cascade to the traces.
                # Set on the driver's connection, because inside a transaction this pragma does nothing.
                raw.execute("PRAGMA foreign_keys=OFF")
            try:
                with connection.begin():
                    yield connection
            finally:
                if sqlite:
                    raw.execute("PRAGMA foreign_keys=ON")

    def close(self) -> None:
        """Close the connections that are not in use; the others close when they are given back."""
        self.writer.dispose()
        self.reader.dispose()


def place_of(url: str) -> Place:
    """The database in words, for sentences and logs; it never fails and never shows a password."""
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        return Place("The run log that UNMASK_DATABASE names", (url,))
    if parsed.get_backend_name() == "sqlite":
        return Place("The run log in memory" if _is_memory(parsed) else f"The run log {_absolute(parsed)}")
    hidden = [parsed.password, *(v for k, v in parsed.query.items() if "pass" in k.lower())]
    secrets = tuple(secret for secret in hidden if isinstance(secret, str) and secret)
    port = f":{parsed.port}" if parsed.port else ""
    # An @ in a password that is not written as %40 makes the rest of the password part of the host.
    host = (parsed.host or "").rpartition("@")[2] or "this machine"
    name = f"The run log on {host}{port}/{parsed.database or ''}"
    return Place(name, secrets)


def connect(url: str, busy_seconds: float) -> Database:
    """Engines for `url`; nothing is opened yet, but the folder of a SQLite file is made.

    Raises:
        UnusableError: the URL is not one, or names a driver that the app does not have.
        OSError: the folder cannot be made.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, place_of(url), busy_seconds)
    given = {"connect_timeout": _CONNECT_SECONDS, "application_name": "unmask"}
    engine = create_engine(
        parsed,
        pool_pre_ping=True,
        max_overflow=15,
        hide_parameters=True,
        connect_args={key: value for key, value in given.items() if key not in parsed.query},
    )
    return Database(place_of(url), engine, engine)


def in_memory() -> Database:
    """A database that lives as long as this object."""
    return _sqlite(make_url("sqlite://"), Place("The run log in memory"), 0.0)


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise UnusableError("UNMASK_DATABASE is not a database URL", _EXAMPLES) from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        return parsed
    if parsed.drivername not in {"postgres", "postgresql", "postgresql+psycopg"}:
        cause = f"UNMASK_DATABASE names the database driver {parsed.drivername!r}, which this app does not have"
        raise UnusableError(cause, _EXAMPLES)
    if "@" in (parsed.host or ""):
        raise UnusableError("The password in UNMASK_DATABASE has an @ in it", "write each @ of the password as %40")
    return parsed.set(drivername="postgresql+psycopg")


def _sqlite(url: URL, place: Place, busy_seconds: float) -> Database:
    if _is_memory(url):
        engine = _sqlite_engine(url, busy_seconds, "BEGIN", [], **_POOL_OF_ONE)
        return Database(place, engine, engine, in_memory=True)
    if not _is_uri(url):
        path = _absolute(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        url = url.set(database=str(path))
    if os.environ.get("SYSTEM") == "spaces":
        # Locking first: a file left in WAL mode can then be read without shared memory.
        pragmas = ["locking_mode=EXCLUSIVE", "journal_mode=DELETE", "synchronous=FULL"]
        engine = _sqlite_engine(url, busy_seconds, "BEGIN IMMEDIATE", pragmas, **_POOL_OF_ONE)
        return Database(place, engine, engine)
    pragmas = ["journal_mode=WAL", "synchronous=NORMAL"]
    # IMMEDIATE: a transaction that starts as a reader and then writes fails at once when it meets another
    # writer, whatever the busy timeout says.
    writer = _sqlite_engine(url, busy_seconds, "BEGIN IMMEDIATE", pragmas, **_POOL_OF_ONE)
    reader = _sqlite_engine(url, busy_seconds, "BEGIN", ["query_only=ON"], poolclass=QueuePool, max_overflow=15)
    return Database(place, writer, reader)


def _sqlite_engine(url: URL, busy_seconds: float, begin: str, pragmas: list[str], **pool: Any) -> Engine:
    connect_args = {"timeout": busy_seconds, "check_same_thread": False}
    engine = create_engine(url, connect_args=connect_args, hide_parameters=True, **pool)

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        # Python's sqlite3 would otherwise begin transactions by rules of its own.
        connection.isolation_level = None
        for pragma in (*pragmas, "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _is_memory(url: URL) -> bool:
    return url.database in {None, "", ":memory:"}


def _is_uri(url: URL) -> bool:
    return (url.database or "").startswith("file:")


def _absolute(url: URL) -> Path:
    """The path of a SQLite file, so that a later change of folder does not move it."""
    database = url.database or ""
    path = Path(database.removeprefix("file:") if _is_uri(url) else database)
    try:
        return path.expanduser().absolute()
    except (RuntimeError, OSError):  # no such user's home, or the current folder is gone
        return path
