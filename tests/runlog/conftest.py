"""Stores on real files, and a PostgreSQL server of our own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from playground.runlog.store import RunStore

Open = Callable[..., RunStore]


@pytest.fixture(autouse=True)
def _not_on_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYSTEM", raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the run log of a test lies; neither the file nor its folder exists yet."""
    return tmp_path / "data" / "runs.sqlite3"


@pytest.fixture
def open_store() -> Iterator[Open]:
    """`RunStore.open` for a path or URL; every store is closed after the test."""
    with ExitStack() as stack:

        def open_one(where: Path | str, **options: float) -> RunStore:
            url = where if isinstance(where, str) else f"sqlite:///{where}"
            return stack.enter_context(RunStore.open(url, **options))

        yield open_one


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, path: Path, open_store: Open) -> RunStore:
    """An empty run log; a test that takes it runs once on either database."""
    return open_store(path if request.param == "sqlite" else request.getfixturevalue("cluster").fresh_url())


class Cluster:
    """A PostgreSQL server on a free port of this machine, with its data in a temporary folder."""

    def __init__(self, binaries: Path, folder: Path, user: str | None) -> None:
        self._binaries, self._folder, self._user = binaries, folder, user
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        secret = folder / "secret"
        secret.write_text("s3cret-w0rd")
        if user is not None:
            for owned in (folder, secret):
                shutil.chown(owned, user, pwd.getpwnam(user).pw_gid)
        self._call("initdb", "-D", str(folder / "data"), "-U", "unmask", "-A", "scram-sha-256", f"--pwfile={secret}")
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._call(
            "pg_ctl", "-D", str(self._folder / "data"), "-l", str(self._folder / "log"), "-w", "-o", options, "start"
        )

    def stop(self) -> None:
        self._call("pg_ctl", "-D", str(self._folder / "data"), "-w", "-m", "immediate", "stop")

    def url(self, database: str, password: str = "s3cret-w0rd") -> str:
        return f"postgresql+psycopg://unmask:{password}@127.0.0.1:{self.port}/{database}"

    def fresh_url(self) -> str:
        """A URL behind which there is nothing yet: a schema of its own, which costs far less than a database."""
        name = f"runs_{uuid4().hex[:8]}"
        with psycopg.connect(self.url("postgres").replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self.url('postgres')}?options=-csearch_path%3D{name}"

    def _call(self, program: str, *arguments: str) -> None:
        identity = (
            {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "extra_groups": []} if self._user else {}
        )
        done = subprocess.run(
            [self._binaries / program, *arguments],
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            # The server inherits these; a pipe would keep us waiting for as long as it runs.
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=90,
            **identity,
        )
        if done.returncode:
            log = self._folder / "log"
            raise RuntimeError(f"{program} failed ({done.returncode}): {log.read_text() if log.exists() else 'no log'}")


def _no_postgres(reason: str) -> None:
    if os.environ.get("UNMASK_REQUIRE_POSTGRES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _binaries() -> Path | None:
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda found: int(found.parts[-3]))
    found = str(newest[-1]) if newest else shutil.which("initdb")
    return Path(found).resolve().parent if found else None


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One server for all tests; each takes a database of its own."""
    binaries = _binaries()
    if binaries is None:
        _no_postgres("No PostgreSQL server is installed here (initdb is not found); apt-get install postgresql.")
        return
    user = None
    if os.geteuid() == 0:
        # initdb and the server refuse to run as root.
        users = {entry.pw_name for entry in pwd.getpwall()}
        user = next((name for name in ("postgres", "nobody") if name in users), None)
        if user is None:
            _no_postgres("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as.")
    # Not under pytest's own folder, which only its owner may enter.
    with tempfile.TemporaryDirectory(prefix="unmask-pg-", ignore_cleanup_errors=True) as folder:
        server = Cluster(binaries, Path(folder), user)
        try:
            yield server
        finally:
            server.stop()
