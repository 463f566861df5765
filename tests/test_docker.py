"""The Dockerfile's steps, as far as a machine without a container engine can take them.

The image's files are laid out in a folder as COPY and .dockerignore would, and the app is started there, as the
image's user where this process may change to it, with the image's environment.
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
import time
import urllib.request
from fnmatch import fnmatch
from pathlib import Path

from playground.settings import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
IGNORED = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
UID = 1000


def steps(name: str) -> list[str]:
    return re.findall(rf"^{name}\s+(.*)$", DOCKERFILE, re.M)


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in steps("ENV") for pair in line.split())


def ignored(path: Path) -> bool:
    parts = path.relative_to(ROOT).as_posix()
    return any(
        parts == rule or parts.startswith(f"{rule}/") or fnmatch(path.name, rule.removeprefix("**/"))
        for rule in IGNORED
    )


def lay_out(app: Path) -> None:
    """Every COPY step, with its sources read from the Dockerfile."""
    for line in steps("COPY"):
        *sources, target = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            found = ROOT / source
            assert found.exists(), f"COPY {source}: there is no such file"
            for path in [found] if found.is_file() else sorted(found.rglob("*")):
                if path.is_file() and not ignored(path):
                    to = app / target / (path.name if found.is_file() else path.relative_to(found))
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, to)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def interpreter_is_public() -> bool:
    """Whether another user may run this Python; one installed under /root is root's alone."""
    real = Path(sys.executable).resolve()
    return all(parent.stat().st_mode & 0o001 for parent in [*Path(sys.prefix).parents, *real.parents])


def wait_until_ready(port: int, app: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and app.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
                if json.load(answer)["model"]["state"] == "ready":
                    return
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError(f"the app did not become ready (exit status {app.poll()})")


def test_instructions() -> None:
    assert f"--uid {UID} user" in DOCKERFILE
    assert steps("USER") == ["user"]
    assert steps("EXPOSE") == ["7860"]
    assert re.match(r"python:3\.1[12]", steps("FROM")[0])
    set_ = environment()
    assert set_["GRADIO_SERVER_NAME"] == "0.0.0.0"
    assert set_["GRADIO_SERVER_PORT"] == "7860"
    assert set_["GRADIO_ANALYTICS_ENABLED"] == "False"
    made = steps("RUN")[0]
    for name in ("UNMASK_DATA", "HF_HOME", "GRADIO_TEMP_DIR"):
        assert set_[name] in made, f"{name} is not made before USER"
    # Requirements are copied and installed before the code, so that the layer is reused.
    assert DOCKERFILE.index("pip install") < DOCKERFILE.index("COPY --chown=user:user playground/")


def test_the_image_starts_answers_its_health_check_and_stops(tmp_path: Path) -> None:
    home = tmp_path / "home"
    app_folder = home / "app"
    lay_out(app_folder)
    assert not (app_folder / "tests").exists()
    port = free_port()
    set_ = {name: value.replace("/home/user", str(home)) for name, value in environment().items()}
    set_ |= {"GRADIO_SERVER_PORT": str(port), "GRADIO_SERVER_NAME": "127.0.0.1", "PATH": os.environ["PATH"]}
    for name in ("UNMASK_DATA", "HF_HOME", "GRADIO_TEMP_DIR"):
        Path(set_[name]).mkdir(parents=True)
    as_user: dict[str, int] = {}
    if os.getuid() == 0 and interpreter_is_public():
        as_user = {"user": UID, "group": UID}
        for folder in (Path(set_["UNMASK_DATA"]), *(home / ".cache").rglob("*"), home / ".cache"):
            os.chown(folder, UID, UID)
        for parent in [tmp_path, *tmp_path.parents]:
            if parent.stat().st_uid == 0 and parent not in (Path("/"), Path("/tmp")):
                parent.chmod(parent.stat().st_mode | 0o055)
    before = set(app_folder.rglob("*"))
    command = [sys.executable, *json.loads(steps("CMD")[-1])[1:]]
    with (tmp_path / "log").open("wb") as log:
        app = subprocess.Popen(command, cwd=app_folder, env=set_, stdout=log, stderr=log, **as_user)  # type: ignore[call-overload]
        try:
            wait_until_ready(port, app)
            check = json.loads(re.search(r"HEALTHCHECK.*?CMD (\[.*\])", DOCKERFILE).group(1))  # type: ignore[union-attr]
            subprocess.run([sys.executable, *check[1:]], env=set_, check=True, timeout=30)
        finally:
            app.send_signal(signal.SIGTERM)
            status = app.wait(60)
    said = (tmp_path / "log").read_text(errors="replace")
    assert status == 0, said
    assert set(app_folder.rglob("*")) == before, "the app wrote beside its code"
    assert (Path(set_["UNMASK_DATA"]) / "runs.sqlite3").is_file(), said
