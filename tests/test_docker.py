"""The Dockerfile's steps, as far as a machine without a container engine can take them.

The image's files are laid out in a folder as COPY and .dockerignore would, and the app is started there with the
image's environment and, where this process may change to it, as the image's user.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from playground.settings import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
HOME = "/home/user"
UID = 1000
WRITABLE = ("UNMASK_DATA", "HF_HOME", "GRADIO_TEMP_DIR")
PATIENCE = 240.0
"""Seconds after which a wait has failed. The machines that run this are slow and shared."""


def steps(name: str) -> list[str]:
    return re.findall(rf"^{name}\s+(.*)$", DOCKERFILE, re.M)


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in steps("ENV") for pair in line.split())


def copies() -> list[tuple[list[str], str]]:
    """Sources and target of each COPY."""
    lines = [[word for word in line.split() if not word.startswith("--")] for line in steps("COPY")]
    return [(words[:-1], words[-1]) for words in lines]


# --- laying the image out -----------------------------------------------------------------------


def ignored(path: str) -> bool:
    """What .dockerignore says of a path: a rule holds for what is below it too, and the last rule that holds wins."""
    parents = [path, *(p.as_posix() for p in Path(path).parents if p != Path())]
    out = False
    for rule in IGNORED:
        pattern = re.escape(rule.removeprefix("!").strip("/"))
        pattern = pattern.replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        if any(re.fullmatch(pattern, one) for one in parents):
            out = not rule.startswith("!")
    return out


def lay_out(app: Path) -> None:
    for sources, target in copies():
        for source in sources:
            found = ROOT / source
            for path in [found] if found.is_file() else sorted(found.rglob("*")):
                if path.is_file() and not ignored(path.relative_to(ROOT).as_posix()):
                    to = app / target / (path.name if found.is_file() else path.relative_to(found))
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, to)


@pytest.fixture
def home() -> Iterator[Path]:
    """The image's home folder. Not under pytest's own folder, which only its owner may enter."""
    with tempfile.TemporaryDirectory(prefix="unmask-image-") as folder:
        home = Path(folder) / "user"
        lay_out(home / "app")
        for name in WRITABLE:
            (home / Path(environment()[name]).relative_to(HOME)).mkdir(parents=True)
        if os.geteuid() == 0:
            Path(folder).chmod(0o755)
            for path in (home, *home.rglob("*")):
                os.chown(path, UID, UID)
        yield home


def as_the_user(command: list[str]) -> tuple[list[str], dict[str, Any]]:
    """`command` and options of Popen that run it as the image's user; as this one where that cannot be done."""
    if os.geteuid() != 0:
        return command, {}
    real = Path(sys.executable).resolve()
    if all(parent.stat().st_mode & 0o001 for parent in [*Path(sys.prefix).parents, *real.parents]):
        return command, {"user": UID, "group": UID, "extra_groups": []}
    # A Python under /root is root's alone: the user may read everything, then, but write no more than in the image.
    reading = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    become = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", *reading]
    able = shutil.which("setpriv") and subprocess.run([*become, "true"], check=False).returncode == 0
    return ([*become, *command] if able else command), {}


def fetch(url: str) -> bytes:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
        return bytes(answer.read())


def wait_until_ready(url: str, app: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up and app.poll() is None:
        try:
            if json.loads(fetch(f"{url}/healthz"))["model"]["state"] == "ready":
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(f"the app did not become ready (exit status {app.poll()})")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- tests --------------------------------------------------------------------------------------


def test_instructions() -> None:
    (base,) = steps("FROM")
    assert re.fullmatch(r"python:3\.1[12]-slim", base)
    assert f"--uid {UID} user" in DOCKERFILE
    assert steps("USER") == ["user"]
    assert steps("EXPOSE") == ["7860"]
    assert len(steps("HEALTHCHECK")) == 1
    assert f"{HOME}/app" == steps("WORKDIR")[0]
    settings = environment()
    assert settings["HOME"] == HOME
    assert settings["GRADIO_SERVER_NAME"] == "0.0.0.0"
    assert settings["GRADIO_SERVER_PORT"] == "7860"
    assert settings["GRADIO_ANALYTICS_ENABLED"] == "False"
    made = steps("RUN")[0]
    for name in WRITABLE:
        assert made.count(settings[name]) == 2, f"{name} is not made, or not given to the user"
    assert DOCKERFILE.index("useradd") < DOCKERFILE.index("\nUSER") < DOCKERFILE.index("pip install")
    # Requirements are copied and installed before the code, so that the layer is reused.
    assert copies()[0][0] == ["requirements.txt"]
    assert DOCKERFILE.index("pip install") < DOCKERFILE.index("playground/")


def test_everything_copied_is_there_and_belongs_to_the_user() -> None:
    for line in steps("COPY"):
        assert "--chown=user:user" in line
    for sources, _ in copies():
        for source in sources:
            assert (ROOT / source).exists(), f"COPY {source}: there is no such file"
            assert not ignored(source.rstrip("/")), f"COPY {source}: .dockerignore leaves it out"


def test_dockerignore_leaves_out_what_the_image_does_not_need() -> None:
    for path in (".git/HEAD", ".venv/bin/python", "data/runs.sqlite3", "tests/conftest.py", "node_modules/x"):
        assert ignored(path), path
    for path in ("playground/__pycache__/trace.cpython-311.pyc", "playground/ui/__pycache__"):
        assert ignored(path), path
    assert not ignored("playground/trace.py")


def test_the_image_starts_answers_its_health_check_and_stops(home: Path, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {name: value.replace(HOME, str(home)) for name, value in environment().items()}
    settings |= {"GRADIO_SERVER_PORT": str(port), "GRADIO_SERVER_NAME": "127.0.0.1", "PATH": os.environ["PATH"]}
    before = {path for path in home.rglob("*") if (home / ".cache") not in path.parents}
    command, identity = as_the_user([sys.executable, *json.loads(steps("CMD")[-1])[1:]])
    with (tmp_path / "log").open("wb") as log:
        app = subprocess.Popen(command, cwd=home / "app", env=settings, stdout=log, stderr=log, **identity)
        try:
            wait_until_ready(url, app)
            (check,) = re.findall(r"^HEALTHCHECK.*?CMD (\[.*\])", DOCKERFILE, re.M)
            # A proxy that is not there: the check must not ask it.
            proxied = {**settings, "http_proxy": "http://127.0.0.1:9"}
            subprocess.run([sys.executable, *json.loads(check)[1:]], env=proxied, check=True, timeout=60)
            assert b"Unmask" in fetch(f"{url}/")
            assert fetch(f"{url}/unmask/static/player.js") == (ROOT / "static" / "player.js").read_bytes()
        finally:
            app.send_signal(signal.SIGTERM)
            status = app.wait(PATIENCE)
    said = (tmp_path / "log").read_text(errors="replace")
    assert status == 0, said
    assert "Traceback" not in said, said
    new = {path for path in home.rglob("*") if (home / ".cache") not in path.parents} - before
    assert {path.parent for path in new} <= {home / "data"}, f"written outside the data folder: {sorted(new)}"
    log_file = home / "data" / "runs.sqlite3"
    assert log_file.is_file(), said
    if command[0] == "setpriv" or identity:
        assert log_file.stat().st_uid == UID
    with pytest.raises(OSError, match="refused"):
        fetch(f"{url}/healthz")
