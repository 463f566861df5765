"""The command line as people meet it: processes of its own, a terminal, Ctrl+C, pipes that close, the real model.

Runs are short. Nothing here asserts how long anything takes, except that help loads nothing heavy.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.store import RunStore
from playground.settings import ROOT, Settings
from playground.trace import Frame, Trace, from_line

PATIENCE = 300.0
"""Seconds after which a process has hung; machines that run this are slow and shared."""
PLAYGROUND = (sys.executable, "-m", "playground")
LISTENING = ("env", "--default-signal=INT")
"""Ctrl+C reaches the command even where the tests run in the background of a shell, which ignores it."""
# Each Ctrl+C test wants forwards left to stop: one position each, and more of them than any machine does at once.
LONG = (
    "generate",
    "Why is the sky blue?",
    "-n",
    "200",
    "--preset",
    "any-order",
    "--steps",
    "200",
    "--stop-rule",
    "suppressed",
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A run log of its own, and model threads that leave the cores to others while they wait."""
    ours = {"UNMASK_DATA": str(tmp_path), "TERM": "xterm-256color"}
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR"}}
    return {**kept, **ours}


def recorded(folder: Path) -> list[RunRow]:
    """The run log's rows, newest first."""
    with RunStore.open(Settings(data=folder, database="").database_url) as store:
        return store.list_runs(RunFilter())


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """A command with its output in pipes."""
    return subprocess.Popen(
        [*LISTENING, *PLAYGROUND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )


class Terminal:
    """A command in a pseudo-terminal of 24 lines and 80 columns; `output` is everything it drew."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.output = ""
        self._keys, lines = pty.openpty()
        fcntl.ioctl(lines, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self._process = subprocess.Popen(
            # A new session with the terminal in control, so that the Ctrl+C key becomes a signal.
            ["setsid", "--ctty", "--wait", *LISTENING, *PLAYGROUND, *arguments],
            stdin=lines,
            stdout=lines,
            stderr=lines,
            env=environment,
            cwd=ROOT,
        )
        os.close(lines)

    def read(self, enough: Callable[[str], bool]) -> None:
        """Read until `enough` says so, or the command ends."""
        give_up = time.monotonic() + PATIENCE
        while not enough(self.output):
            assert time.monotonic() < give_up, f"the command hung after {self.output[-300:]!r}"
            if not select.select([self._keys], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(self._keys, 65536)
            except OSError:  # how Linux says that the other end is closed
                return
            self.output += data.decode("utf-8", "replace")

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._keys, keys)

    def end(self) -> int:
        """Read the rest; gives the exit code."""
        self.read(lambda _: False)
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """Leave nothing running."""
        os.close(self._keys)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals, and closes them."""
    opened: list[Terminal] = []

    def open_terminal(*arguments: str) -> Terminal:
        opened.append(Terminal(environment, *arguments))
        return opened[-1]

    yield open_terminal
    for each in opened:
        each.close()


def plain(drawn: str) -> str:
    """What was drawn without its control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).replace("\r", "")


# --- help is light ------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["--help"], ["generate", "--help"], ["bench", "--help"], ["models"]])
def test_help_and_models_load_neither_torch_nor_the_run_log(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom playground.cli.main import app\n"
        f"try:\n    app({arguments!r})\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'torch', 'gradio', 'sqlalchemy', 'transformers', 'numpy'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


# --- the terminal -------------------------------------------------------------------------------


def test_watching_shows_masks_and_leaves_the_text(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    screen = terminal("generate", "Why is the sky blue?", "-n", "8", "--watch", "--seed", "1")
    assert screen.end() == 0
    (row,) = recorded(tmp_path)
    drawn = plain(screen.output)
    assert "Loading the model" in drawn
    assert "░░░░" in drawn
    assert re.search(r"Step 1 · 1 forward · \d\.\d\d tokens a forward · [\d.]+ tokens/s · \d masks? left", drawn)
    assert row.text in drawn[drawn.rindex("Step") :]
    assert screen.output.rindex("\x1b[?25h") > screen.output.rindex("\x1b[?25l"), "the cursor was left hidden"


def test_a_terminal_gets_the_text_and_the_figures(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    screen = terminal("generate", "Why is the sky blue?", "-n", "4")
    assert screen.end() == 0
    assert recorded(tmp_path)[0].text in plain(screen.output)
    assert "Seed" in screen.output


def test_ctrl_c_while_watching_keeps_what_there_is(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    screen = terminal(*LONG, "--watch")
    screen.read(lambda output: "Step 2" in output)
    screen.press(b"\x03")
    assert screen.end() == 130
    (row,) = recorded(tmp_path)
    assert row.result == "stopped"
    assert row.text
    assert "Stopped; the text so far is kept." in screen.output
    assert "Traceback" not in screen.output
    assert screen.output.rindex("\x1b[?25h") > screen.output.rindex("\x1b[?25l"), "the cursor was left hidden"


# --- Ctrl+C without a terminal ------------------------------------------------------------------


def test_ctrl_c_stops_after_the_forward_under_way(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, *LONG, "--json") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    trace = Trace.from_lines("".join(lines) + rest)
    assert trace.outcome is not None
    assert trace.outcome.result == "stopped"
    assert len(trace.frames) < 200
    assert complaint == "Stopped; the text so far is kept.\n"
    assert [row.id for row in recorded(tmp_path)] == [trace.header.run_id]


def test_ctrl_c_prints_the_partial_text(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, *LONG) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        text, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in complaint
    # Whether a first forward was made before the signal depends on the machine.
    assert text == "".join(f"{row.text}\n" for row in recorded(tmp_path) if row.text)


def test_a_second_ctrl_c_leaves_at_once(environment: dict[str, str]) -> None:
    with start(environment, *LONG, "--json") as process:
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(200):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
            if process.poll() is not None:
                break
        _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in complaint


# --- pipes and files ----------------------------------------------------------------------------


def test_json_lines_come_while_the_run_goes_on(environment: dict[str, str]) -> None:
    with start(environment, *LONG, "--json", "--no-log") as process:
        assert process.stdout is not None
        process.stdout.readline()
        frame = from_line(process.stdout.readline())
        assert isinstance(frame, Frame)
        assert frame.masks_left == 199
        assert process.poll() is None, "the first frame came only at the end"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def test_a_reader_that_goes_away_ends_the_run_quietly(environment: dict[str, str], tmp_path: Path) -> None:
    with start(environment, *LONG, "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read()
        assert process.wait(PATIENCE) == 141
    assert complaint == ""
    assert recorded(tmp_path)[0].result == "stopped"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence(environment: dict[str, str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PLAYGROUND, "models"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
        )
    assert done.returncode == 1
    assert done.stderr == "The command failed (No space left on device).\n"


def test_text_survives_a_locale_without_it(environment: dict[str, str]) -> None:
    narrow = {**environment, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    with start(narrow, "generate", "Schreib über日本", "-n", "4", "--json", "--no-log") as process:
        lines, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaint) == (0, "")
    assert Trace.from_lines(lines).outcome is not None


def test_closed_streams_do_no_harm(environment: dict[str, str]) -> None:
    command = f"{sys.executable} -m playground models >&- 2>&-"
    done = subprocess.run(["sh", "-c", command], check=False, env=environment, cwd=ROOT, timeout=PATIENCE)
    assert done.returncode in {0, 1}
