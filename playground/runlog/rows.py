"""What the run log hands out and is asked with: plain rows, filters and their CSV. No database here."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, field_validator

from playground.request import clean_text

MAX_SEARCH_CHARACTERS = 1_000
"""Search text is cut here: databases limit a pattern's length, and no one types more."""


class Sort(StrEnum):
    """Columns a list of runs may be sorted by."""

    CREATED = "created"
    MODEL = "model"
    RESULT = "result"
    LENGTH = "length"
    STEPS = "steps"
    SCHEDULE = "schedule"
    TOKENS = "tokens"
    FORWARDS = "forwards"
    FIRST_CANVAS_SECONDS = "first_canvas_seconds"
    MODEL_SECONDS = "model_seconds"
    TOTAL_SECONDS = "total_seconds"


class RunFilter(BaseModel):
    """Which runs, in which order, and which page of them.

    `visitor = None` means everyone's runs, `search` is looked for in prompt and text (ASCII letters match
    in either case), `model` and `result` empty mean any, `limit = None` means no limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    visitor: str | None = None
    search: str = ""
    model: str = ""
    result: str = ""
    sort: Sort = Sort.CREATED
    descending: bool = True
    limit: int | None = Field(default=50, ge=1, le=1_000_000)
    offset: int = Field(default=0, ge=0, le=1_000_000_000)

    @field_validator("search", mode="before")
    @classmethod
    def _clean_search(cls, search: object) -> object:
        if not isinstance(search, str):
            return search
        search = clean_text(search)[:MAX_SEARCH_CHARACTERS]
        return search if search.strip() else ""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run without its frames.

    `result` is empty when the run has no outcome. Settings are None where the run's mode has no such
    setting. The visitor is left out on purpose: whoever knows it can open that visitor's runs.
    """

    id: str
    created: datetime
    model: str
    model_name: str
    mode: str
    prompt: str
    text: str
    result: str
    message: str
    seed: int
    length: int
    steps: int | None
    block: int | None
    schedule: str | None
    confidence: str | None
    threshold: float | None
    entropy_bound: float | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    stop_rule: str | None
    device: str
    dtype: str
    tokens: int
    forwards: int
    queue_seconds: float
    prefill_seconds: float
    first_canvas_seconds: float | None
    model_seconds: float
    total_seconds: float
    parent_run_id: str | None = None
    parent_step: int | None = None


COLUMNS = tuple(field.name for field in fields(RunRow))
"""Names of a row's columns, in the order of the CSV."""


def export_csv(rows: Iterable[RunRow]) -> Iterator[str]:
    """The rows as CSV lines (RFC 4180, CRLF), headings first; safe to open in a spreadsheet."""
    yield _csv_line(COLUMNS)
    for row in rows:
        yield _csv_line([_cell(value) for value in astuple(row)])


def _csv_line(cells: Iterable[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    # A spreadsheet runs text that starts so as a formula (OWASP, "CSV injection"); numbers are left alone.
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        return f"'{value}"
    return value
