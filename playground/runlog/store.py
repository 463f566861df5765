"""The door of the run log: open it, save runs without waiting, ask about them.

It always opens: where the database cannot be used, runs are kept in memory and `problem` says why. Writes go
through one thread (`writer`), reads use connections of their own and see what has been written. It must not
know pages or models.
"""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import exc
from sqlalchemy.orm import Session

from playground.runlog import migrate, queries, rows
from playground.runlog.database import Database, connect, place_of
from playground.runlog.problems import RunLogError, diagnose, is_locked
from playground.runlog.rows import RunFilter, RunRow
from playground.runlog.writer import Delete, Flush, Save, Stop, Writer, memory_database
from playground.trace import Trace, TraceError

logger = logging.getLogger(__name__)

_DELETE_SECONDS = 60.0

T = TypeVar("T")


class RunStore:
    """Runs of all visitors. Every method may be called from any thread; make one with `open`."""

    def __init__(self, database: Database, opening_problem: str | None, retry_seconds: float) -> None:
        self._database = database
        self._opening_problem = opening_problem
        self._writer = Writer(database, retry_seconds)
        atexit.register(self.close)

    @classmethod
    def open(cls, url: str, *, busy_seconds: float = 10.0, retry_seconds: float = 15.0) -> Self:
        """Migrate the database at `url` and open it, or a database in memory where that fails.

        Args:
            url: `sqlite:///…` or `postgresql+psycopg://…`.
            busy_seconds: how long to wait for another program that holds a SQLite file.
            retry_seconds: how often to try again to write what could not be written.
        """
        try:
            return cls(_opened(url, busy_seconds), None, retry_seconds)
        except Exception as error:
            problem = diagnose(error, place_of(url)).on_opening()
            logger.warning("%s", problem)
            return cls(memory_database(), problem, retry_seconds)

    @property
    def problem(self) -> str | None:
        """One sentence to show while runs are not being stored as they should, else None."""
        return self._opening_problem or self._writer.problem

    @property
    def persistent(self) -> bool:
        """Whether the runs outlive this process."""
        return not self._database.in_memory

    # --- writing --------------------------------------------------------------------------------

    def save(self, trace: Trace, visitor: str) -> None:
        """Store a run that has ended, replacing one of the same id; returns at once and never raises."""
        snapshot = Trace(trace.header, list(trace.frames), trace.outcome)
        if not self._writer.submit(Save(snapshot, visitor)):
            logger.warning("Run %s is not recorded: the run log is closed.", trace.header.run_id)

    def delete(self, run_ids: Iterable[str], visitor: str | None) -> int:
        """Delete runs and say how many were; a visitor can delete only their own, None deletes anyone's.

        Raises:
            RunLogError: the database did not do it.
        """
        job = Delete(tuple(run_ids), visitor)
        if not self._writer.submit(job):
            raise RunLogError("The run log is closed, so nothing was deleted; restart the app.")
        try:
            return job.done.result(_DELETE_SECONDS)
        except FutureTimeoutError:
            raise RunLogError(
                f"{self._database.place.name} is busy, so the runs are not deleted yet; look again in a minute."
            ) from None

    def flush(self, timeout: float | None = 30.0) -> bool:
        """Wait until all runs saved so far can be read; False if that took longer than `timeout` seconds."""
        job = Flush()
        if not self._writer.submit(job):
            return self._writer.join(timeout)
        try:
            job.done.result(timeout)
        except FutureTimeoutError:
            return False
        return True

    def close(self, timeout: float | None = 30.0) -> None:
        """Write what is queued, then close; calling it again does nothing. It also runs at exit."""
        if not self._writer.submit(Stop()):
            return
        atexit.unregister(self.close)
        if not self._writer.join(timeout):
            logger.warning("%s is busy, so the newest runs were not recorded.", self._database.place.name)
        self._database.close()
        if self._writer.kept is not None:
            self._writer.kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- reading --------------------------------------------------------------------------------
    # Each of these raises RunLogError where the database cannot answer.

    def list_runs(self, wanted: RunFilter) -> list[RunRow]:
        """The page of runs that `wanted` describes."""
        last = None if wanted.limit is None else wanted.offset + wanted.limit
        head = wanted.model_copy(update={"limit": last, "offset": 0})
        found, kept_ids = self._ask_kept(lambda session: queries.list_runs(session, head), list[RunRow]())
        if not kept_ids:
            return self._ask(lambda session: queries.list_runs(session, wanted))
        found += self._ask(lambda session: queries.list_runs(session, head, kept_ids), list[RunRow]())
        return queries.merged(found, wanted)

    def count(self, wanted: RunFilter) -> int:
        """How many runs `wanted` matches on all its pages."""
        kept, kept_ids = self._ask_kept(lambda session: queries.count(session, wanted), 0)
        otherwise = 0 if kept_ids else None
        return kept + self._ask(lambda session: queries.count(session, wanted, kept_ids), otherwise)

    def models(self, visitor: str | None) -> list[str]:
        """Ids of the models in the visitor's runs (None: everyone's), sorted."""
        kept, kept_ids = self._ask_kept(lambda session: queries.models(session, visitor), set[str]())
        otherwise = set[str]() if kept_ids else None
        return sorted(kept | self._ask(lambda session: queries.models(session, visitor), otherwise))

    def family(self, run_id: str, visitor: str | None) -> list[tuple[int, RunRow]]:
        """A run's tree of branches, each with its depth, parents first; empty where there is no such run.

        While runs wait in memory because they could not be written, only trees within one of the two are whole.
        """
        kept, _ = self._ask_kept(lambda session: queries.family(session, run_id, visitor), list[tuple[int, RunRow]]())
        return kept or self._ask(lambda session: queries.family(session, run_id, visitor))

    def load_trace(self, run_id: str, visitor: str | None) -> Trace | None:
        """The trace of a run; None where there is none or it is another visitor's (None: no restriction).

        Raises:
            TraceError: a newer version of the app wrote the trace.
        """

        def load(session: Session) -> Trace | None:
            return queries.load_trace(session, run_id, visitor)

        kept, _ = self._ask_kept(load, None)
        return kept or self._ask(load)

    def export_csv(self, wanted: RunFilter) -> Iterator[str]:
        """CSV lines of every run that `wanted` matches, on all its pages."""
        return rows.export_csv(self._every_row(wanted))

    def export_jsonl(self, wanted: RunFilter) -> Iterator[str]:
        """Whole traces of every run that `wanted` matches, one run after another, each as its JSON lines."""
        for run_id in self._every_id(wanted):
            try:
                trace = self.load_trace(run_id, wanted.visitor)
            except (RunLogError, TraceError) as error:
                # One damaged trace must not cost the rest of the download.
                logger.warning("The export leaves run %s out. %s", run_id, error)
                continue
            if trace is not None:
                yield trace.to_lines()

    def _every_row(self, wanted: RunFilter) -> Iterator[RunRow]:
        for chunk in queries.chunks(self._every_id(wanted)):
            yield from self._rows_of(chunk)

    def _rows_of(self, ids: Sequence[str]) -> list[RunRow]:
        kept, kept_ids = self._ask_kept(lambda session: queries.rows_of(session, ids), list[RunRow]())
        stored = [run_id for run_id in ids if run_id not in kept_ids]
        return kept + (self._ask(lambda session: queries.rows_of(session, stored)) if stored else [])

    def _every_id(self, wanted: RunFilter) -> list[str]:
        # Ids first and the rest piece by piece: no connection is held while a slow client downloads, and
        # runs that arrive meanwhile shift no page.
        every = wanted.model_copy(update={"limit": None, "offset": 0})
        kept, kept_ids = self._ask_kept(lambda session: queries.list_ids(session, every), list[str]())
        otherwise = list[str]() if kept_ids else None
        return kept + self._ask(lambda session: queries.list_ids(session, every, kept_ids), otherwise)

    def _ask_kept(self, question: Callable[[Session], T], nothing: T) -> tuple[T, list[str]]:
        """Ask the runs that wait in memory because they could not be written; their ids come along."""
        if self._writer.kept is None:
            return nothing, []
        with Session(self._writer.kept.reader) as session:
            return question(session), queries.list_ids(session, RunFilter(limit=None))

    def _ask(self, question: Callable[[Session], T], otherwise: T | None = None) -> T:
        """Ask the database; `otherwise` is the answer where it fails, and None means to raise."""
        try:
            with Session(self._database.reader) as session:
                return question(session)
        except exc.SQLAlchemyError as error:
            if otherwise is not None:
                return otherwise
            raise RunLogError(diagnose(error, self._database.place).on_asking()) from None


def _opened(url: str, busy_seconds: float) -> Database:
    database = connect(url, busy_seconds)
    give_up = time.monotonic() + busy_seconds
    while True:
        try:
            with database.migrating() as connection:
                migrate.upgrade(connection)
            return database
        except Exception as error:
            # Two processes that open a new file at once: switching it to WAL does not wait for the other.
            if not is_locked(error) or time.monotonic() > give_up:
                database.close()
                raise
            time.sleep(0.05)
