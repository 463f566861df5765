"""Starts the app as people do, in a process of its own, and reads its run log from outside."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import httpx

from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.store import RunStore
from playground.settings import ROOT
from playground.trace import Trace

PATIENCE = 120.0
"""Seconds after which a wait has failed. The machines that run this are slow and shared."""

T = TypeVar("T")


def wait_until(what: str, found: Callable[[], T | None], patience: float = PATIENCE) -> T:
    """Ask again and again until there is something."""
    give_up = time.monotonic() + patience
    while True:
        if (answer := found()) is not None:
            return answer
        assert time.monotonic() < give_up, f"waited in vain for {what}"
        time.sleep(0.1)


class App:
    """A running app: where it is, what its health is, what is in its run log."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, data: Path, output: Path) -> None:
        self._process, self._output = process, output
        self.url = f"http://127.0.0.1:{port}"
        self.database = data / "runs.sqlite3"

    @property
    def output(self) -> str:
        """What it has printed."""
        return self._output.read_text("utf-8", "replace")

    def health(self) -> httpx.Response | None:
        """What /healthz says; None while nobody listens."""
        assert self._process.poll() is None, f"the app ended:\n{self.output}"
        try:
            return httpx.get(f"{self.url}/healthz", timeout=30, trust_env=False)
        except httpx.TransportError:
            return None

    def wait_for_model(self, state: str) -> httpx.Response:
        """Wait until /healthz gives this state of the model."""

        def found() -> httpx.Response | None:
            health = self.health()
            return health if health is not None and health.json()["model"]["state"] == state else None

        return wait_until(f"a model that is {state}", found)

    # --- its run log ----------------------------------------------------------------------------

    @contextmanager
    def store(self) -> Iterator[RunStore]:
        """The run log, opened beside the app."""
        with RunStore.open(f"sqlite:///{self.database}") as store:
            assert store.problem is None
            yield store

    def runs(self, search: str) -> list[RunRow]:
        """Runs of any visitor whose prompt or text holds `search`, newest first."""
        with self.store() as store:
            return store.list_runs(RunFilter(search=search))

    def wait_for_run(self, search: str) -> Trace:
        """The newest such run's trace, once it is there."""
        row = wait_until(f"{search!r} in the run log", lambda: next(iter(self.runs(search)), None))
        with self.store() as store:
            trace = store.load_trace(row.id, None)
        assert trace is not None
        return trace

    def visitor_of(self, run_id: str) -> str:
        """Whose run it is, which no row hands out."""
        with closing(sqlite3.connect(self.database)) as connection:
            ((visitor,),) = connection.execute("select visitor from runs where id = ?", (run_id,))
        return str(visitor)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(folder: Path, script: Path = ROOT / "app.py", **environment: str) -> Iterator[App]:
    """The app, from the moment it answers; stopped by SIGTERM, which has to end it without complaint."""
    port, data, output = free_port(), folder / "data", folder / "output.txt"
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("UNMASK_", "GRADIO_"))}
    settings |= {"UNMASK_DATA": str(data), "GRADIO_SERVER_PORT": str(port), "PYTHONPATH": str(ROOT), **environment}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(script)], cwd=folder, env=settings, stdout=log, stderr=subprocess.STDOUT
        )
    app = App(process, port, data, output)
    try:
        wait_until("an answer from the app", app.health)
        yield app
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
    assert code == 0, f"the app ended with {code}:\n{app.output}"
    assert "Traceback" not in app.output, app.output
