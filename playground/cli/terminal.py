"""What may reach a terminal, and how: text made inert, lines on stderr, pipes that close early.

A model can write anything, escape sequences included; nothing it wrote may move a cursor, change a title or be taken
for markup. This module must not know runs or models.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import typer
from rich.console import Console

BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended."""

# Controls become their pictures, so that one sees that something was there. Bidirectional overrides go: they would
# reorder what stands beside them. U+2426 pictures what has no picture of its own.
_PICTURES: dict[int, int | str | None] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0x2426),
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C]),
    0x2028: "\n",
    0x2029: "\n",
}
_INERT = {code: to for code, to in _PICTURES.items() if chr(code) not in "\n\t"}
_ONE_LINE = {**_PICTURES, **dict.fromkeys((ord("\n"), ord("\t"), ord("\r"), 0x2028, 0x2029), " ")}


class CommandError(typer.TyperException):
    """Ends the command with one sentence on stderr and `exit_code`."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class BadRequest(CommandError):  # noqa: N818  (it is one, for whoever reads the exit code)
    """What was asked cannot be done; exit code 2."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 2)


def inert(text: str) -> str:
    """`text` without anything that a terminal would obey; line breaks and tabs stay."""
    return text.translate(_INERT)


def one_line(text: str) -> str:
    """`text` as one inert line."""
    return text.translate(_ONE_LINE)


def say(sentence: str) -> None:
    """One line on stderr."""
    if sys.stderr is not None:
        sys.stderr.write(f"{one_line(sentence).strip()}\n")
        sys.stderr.flush()


def put(text: str) -> None:
    """Text on stdout, at once and as UTF-8, whatever the locale says."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def is_terminal(stream: Any) -> bool:
    """Whether someone reads `stream` (stdout or stderr) as it is written."""
    return stream is not None and stream.isatty()


class PlainConsole(Console):
    """A rich console that takes text as text: no markup, no emoji codes, no highlighting."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def on_broken_pipe(self) -> NoReturn:
        """Whoever called decides what to do; rich itself would exit with 1."""
        raise BrokenPipeError


def prepare_streams() -> None:
    """No text can fail to be printed or read for lack of a character in the terminal's encoding."""
    for stream, errors in ((sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace"), (sys.stdin, "replace")):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=errors)


def forget_stdout() -> None:
    """Send the rest of stdout nowhere: its reader is gone, and Python would complain when it flushes at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):
        pass
