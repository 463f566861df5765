"""The app in a process of its own, as people start it, for benchmarks that look at it from outside.

Its run log lies in a folder that goes afterwards. Must not know what is measured, nor what is on the page.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from playground.labs.bench_runs import BenchError
from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.store import RunStore
from playground.settings import ROOT, Settings

START_SECONDS = 120.0
AS_PEOPLE_DO = (str(ROOT / "app.py"),)


def environment_of(folder: Path, **settings: str) -> dict[str, str]:
    """This process's environment, the run log in `folder`, and these settings over both."""
    ours = {
        "UNMASK_DATA": str(folder),
        "UNMASK_DATABASE": "",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return {**os.environ, **ours, **settings}


@contextmanager
def serving(environment: Mapping[str, str], arguments: Sequence[str] = AS_PEOPLE_DO) -> Iterator[str]:
    """The app's address, once its model is ready.

    Args:
        environment: of its process.
        arguments: what Python is started with.

    Raises:
        BenchError: it does not start.
    """
    port = _free_port()
    environment = {**environment, "GRADIO_SERVER_PORT": str(port), "GRADIO_SERVER_NAME": "127.0.0.1"}
    app = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        give_up = time.monotonic() + START_SECONDS
        while not _is_ready(address):
            if app.poll() is not None or time.monotonic() > give_up:
                raise BenchError("The app did not start; run `python app.py` to see why.")
            time.sleep(0.2)
        yield address
    finally:
        app.terminate()
        try:
            app.wait(30)
        except subprocess.TimeoutExpired:
            app.kill()
            app.wait()


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=5) as answer:
            return bool(json.load(answer)["model"]["state"] == "ready")
    except (OSError, ValueError, KeyError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def log_in(folder: Path) -> Iterator[RunStore]:
    """The run log of the app that keeps it in `folder`."""
    with RunStore.open(Settings(data=folder, database="").database_url) as store:
        yield store


def newest_run(store: RunStore, count: int) -> RunRow:
    """The newest run once the app has recorded `count` of them."""
    give_up = time.monotonic() + START_SECONDS
    while store.count(RunFilter()) < count:
        if time.monotonic() > give_up:
            raise BenchError("The app did not record its run; look at its run log settings.")
        time.sleep(0.1)
    return store.list_runs(RunFilter(limit=1))[0]
