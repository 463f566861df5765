"""What went wrong with the run log, as one sentence that says what happened, where and what to do.

No sentence holds a password: places are built from host, port and database name, and what a driver says is
searched for the secrets of its URL. This module must not know tables or queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import exc


class RunLogError(RuntimeError):
    """The run log cannot answer; the text is one sentence that says what to do."""


class NewerSchemaError(Exception):
    """The database was migrated by a later version of this app; the text is its revision."""


@dataclass(frozen=True)
class Problem:
    """A cause ("The run log … cannot be read (…)") and advice ("move that file away …")."""

    cause: str
    advice: str

    def on_opening(self) -> str:
        """The sentence for a run log that did not open."""
        return f"{self.cause}, so runs are kept only until restart; {self.advice}."

    def on_writing(self, kept: int) -> str:
        """The sentence for a run log that stopped taking runs."""
        newest = "the newest run is" if kept == 1 else f"the newest {kept} runs are"
        return f"{self.cause}, so {newest} kept in memory and will be written once it works again; {self.advice}."

    def on_asking(self) -> str:
        """The sentence for a question that the run log could not answer."""
        return f"{self.cause}; {self.advice}."


@dataclass(frozen=True)
class Place:
    """A database in words, and the words that must never be shown."""

    name: str
    secrets: tuple[str, ...] = ()

    def scrub(self, text: str) -> str:
        """`text` without the place's secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


class UnusableError(Exception):
    """A URL that cannot be opened at all."""

    def __init__(self, cause: str, advice: str) -> None:
        super().__init__(cause)
        self.problem = Problem(cause, advice)


# Looked for in what the driver says, in this order: (words, what cannot be done, what to do).
_KNOWN: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("not a database", "malformed"),
        "cannot be read",
        "move that file away or set UNMASK_DATABASE to another database",
    ),
    (
        ("locked",),
        "is in use by another program",
        "close that program, then restart the app",
    ),
    (
        ("disk is full", "no space left", "could not extend file"),
        "cannot be written",
        "free some disk space",
    ),
    (
        ("permission denied for", "read-only transaction"),
        "cannot be written",
        "let its database user create and change tables",
    ),
    (
        ("readonly", "read-only", "permission denied", "unable to open", "not a directory", "file exists"),
        "cannot be written",
        "make the file and its folder writable for the app, or set UNMASK_DATA to another folder",
    ),
    (
        ("already exists",),
        "holds tables of another program",
        "set UNMASK_DATABASE to a database that the app has to itself",
    ),
    (
        ("no such table", "no such column", "relation", "column"),
        "lacks tables that the app made",
        "restart the app, or set UNMASK_DATABASE to another database",
    ),
    (
        ("password", "does not exist"),
        "refuses the app",
        "correct user, password and database name in UNMASK_DATABASE, then restart the app",
    ),
    (
        ("connect", "translate host", "resolve", "closed", "timeout expired", "starting up", "terminat"),
        "cannot be reached",
        "check that the server runs and that UNMASK_DATABASE names it",
    ),
)


def diagnose(error: BaseException, place: Place) -> Problem:
    """Put an error of the database, its driver or the file system into words."""
    if isinstance(error, UnusableError):
        return error.problem
    if isinstance(error, NewerSchemaError):
        return Problem(
            f"{place.name} was written by a newer version of the app (its schema {error} is unknown here)",
            "update the app or set UNMASK_DATABASE to another database",
        )
    reason = place.scrub(_reason(error))
    said = reason.lower()
    for words, what, advice in _KNOWN:
        if any(word in said for word in words):
            return Problem(f"{place.name} {what} ({reason})", advice)
    return Problem(f"{place.name} does not work ({reason})", "check the database that UNMASK_DATABASE names")


def is_about_one_run(error: BaseException) -> bool:
    """Whether a write failed because of the run itself, so that trying again elsewhere cannot help."""
    if isinstance(error, exc.DataError | exc.IntegrityError):
        return True
    # PostgreSQL's class 54 is "a limit of the program", such as a text too long for an index; its driver files
    # that under OperationalError, next to broken connections.
    if isinstance(error, exc.DBAPIError) and str(getattr(error.orig, "sqlstate", "")).startswith("54"):
        return True
    return not isinstance(error, exc.DBAPIError | exc.TimeoutError | OSError)


def is_locked(error: BaseException) -> bool:
    """Whether another program holds the SQLite file right now."""
    return isinstance(error, exc.OperationalError) and "locked" in str(error.orig)


def _reason(error: BaseException) -> str:
    """The driver's own words: SQLAlchemy's text would repeat the statement and the visitor's prompt."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
    elif isinstance(error, exc.DBAPIError) and error.orig is not None:
        text = str(error.orig)
    elif isinstance(error, exc.TimeoutError):
        text = "every connection is busy"
    else:
        text = str(error)
    return _first(text.splitlines()).strip().rstrip(".")[:300] or type(error).__name__


def _first(lines: Iterable[str]) -> str:
    return next((line for line in lines if line.strip()), "")
