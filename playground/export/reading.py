"""Files taken in: a trace's JSON lines, several runs one after another, or the player's page, which holds its trace.

What comes from a file is checked like what comes from anywhere, and refused with one sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from playground.trace import Trace, TraceError

MAX_BYTES = 32 * 1024 * 1024
"""Largest file that is read; a run of 1,024 positions in 1,024 steps has a few megabytes."""
DATA_ID = "unmask-trace"
"""The element of the player's page that holds its trace."""
_DATA = re.compile(rf'<script type="application/json" id="{DATA_ID}">([^<]*)</script>')
NOT_A_TRACE = (
    "{name} is not a trace; choose a file that was exported as JSON lines or as a player, here or with --json."
)


def read_traces(data: bytes, name: str = "This file") -> list[Trace]:
    """Every run that a file holds, in its order.

    Args:
        data: the file's bytes.
        name: what the sentence of a refusal calls it.

    Raises:
        TraceError: it is too large, is no trace, or is damaged or too new; one sentence says which.
    """
    return [Trace.from_lines(part) for part in runs_in(data, name)]


def runs_in(data: bytes, name: str = "This file") -> list[list[str]]:
    """The lines of each run that a file holds, for `Trace.from_lines`: reading all may cost more than is wanted.

    Raises:
        TraceError: as `read_traces`, as far as that shows without reading the lines.
    """
    if len(data) > MAX_BYTES:
        raise TraceError(f"{name} is larger than {MAX_BYTES // 2**20} MB; no trace is.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TraceError(NOT_A_TRACE.format(name=name)) from None
    lines = _lines_of_page(text) if text.lstrip()[:1] == "<" else text
    if not lines or '"type"' not in lines[:4000]:
        raise TraceError(NOT_A_TRACE.format(name=name))
    return list(_parts(lines))


def _lines_of_page(text: str) -> str:
    """The trace inside a player's page; empty where there is none."""
    found = _DATA.search(text)
    try:
        lines = json.loads(found[1]) if found else ""
    except ValueError:
        return ""
    return lines if isinstance(lines, str) else ""


def _parts(lines: str) -> Iterator[list[str]]:
    """The lines of each run: a header begins another one."""
    part: list[str] = []
    for line in lines.split("\n"):
        if part and _is_header(line):
            yield part
            part = []
        if line.strip():
            part.append(line)
    yield part


def _is_header(line: str) -> bool:
    """Whether a line says that it is a header, wherever in it that stands; what else it says is read later."""
    if '"header"' not in line:
        return False
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("type") == "header"
