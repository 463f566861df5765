"""The one thread that writes to the run log, fed by a queue.

A write that fails is tried again at once; if it still fails, the run goes to a second database of the same
shape, in memory (`kept`), and from there back to the real one as soon as that works again. So a full disk or
a server that restarts costs nothing while the process lives. This module must not know filters or pages.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TypeVar

from sqlalchemy import exc, select
from sqlalchemy.orm import Session, joinedload

from playground.runlog import migrate, queries
from playground.runlog.database import Database, in_memory
from playground.runlog.problems import Problem, RunLogError, diagnose, is_about_one_run
from playground.runlog.records import to_record
from playground.runlog.rows import RunFilter, Sort
from playground.runlog.tables import Run
from playground.trace import Trace

logger = logging.getLogger(__name__)

MEMORY_RUNS = 1_000
"""Most runs held in memory; the oldest go first."""
_BACKOFF = (0.1, 0.5)
_OLDEST_FIRST = RunFilter(sort=Sort.CREATED, descending=False, limit=None)

T = TypeVar("T")


@dataclass(frozen=True)
class Save:
    """Write a run, replacing one of the same id."""

    trace: Trace
    visitor: str


@dataclass(frozen=True)
class Delete:
    """Delete runs, those of `visitor` alone unless it is None; `done` says how many."""

    ids: tuple[str, ...]
    visitor: str | None
    done: Future[int] = field(default_factory=Future)


@dataclass(frozen=True)
class Flush:
    """`done` is set once everything queued before has been dealt with."""

    done: Future[None] = field(default_factory=Future)


@dataclass(frozen=True)
class Stop:
    """End the thread, with a last try to write what is kept in memory."""


Job = Save | Delete | Flush | Stop


def memory_database() -> Database:
    """An empty run log in memory, with its tables."""
    database = in_memory()
    with database.migrating() as connection:
        migrate.upgrade(connection)
    return database


class Writer:
    """Owns all writes to `database`. `problem` is a sentence while it cannot write, else None."""

    def __init__(self, database: Database, retry_seconds: float) -> None:
        self.database = database
        self.kept: Database | None = None
        self.problem: str | None = None
        self._failing: Problem | None = None
        self._retry_seconds = retry_seconds
        self._retry_at = 0.0
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="runlog-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> bool:
        """Queue a job; False once the writer is closed."""
        with self._closing:
            if self._closed:
                return False
            self._closed = isinstance(job, Stop)
            self._queue.put(job)
            return True

    def join(self, timeout: float | None) -> bool:
        """Wait for the thread to end after `Stop`."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # --- the thread -----------------------------------------------------------------------------

    def _work(self) -> None:
        job: Job | None = None
        while not isinstance(job, Stop):
            wait = max(0.0, self._retry_at - time.monotonic()) if self._failing else None
            try:
                job = self._queue.get(timeout=wait)
            except Empty:
                job = None
            try:
                self._do(job)
            except Exception:
                # Whatever happens to one job, the next ones must still be done.
                logger.exception("A job of the run log failed.")
                self._retry_at = time.monotonic() + self._retry_seconds

    def _do(self, job: Job | None) -> None:
        if job is None:
            self._write_kept()
        elif isinstance(job, Save):
            self._save(job)
        elif isinstance(job, Delete):
            self._delete(job)
        elif isinstance(job, Flush):
            job.done.set_result(None)
        elif self._failing and not self._write_kept():
            logger.warning("%s The app stops now, so they are lost.", self.problem)

    def _save(self, job: Save) -> None:
        try:
            run = to_record(job.trace, job.visitor)
        except Exception as error:
            self._refuse(job.trace.header.run_id, error)
            return
        resting = self._failing is not None and (time.monotonic() < self._retry_at or not self._write_kept())
        if resting or not self._write(run):
            self._keep(run)

    def _delete(self, job: Delete) -> None:
        def work(session: Session) -> set[str]:
            return queries.delete_runs(session, job.ids, job.visitor)

        try:
            gone = set() if self.kept is None else _in_transaction(self.kept, work)
            gone |= self._persistently(work)
        except Exception as error:
            job.done.set_exception(RunLogError(diagnose(error, self.database.place).on_asking()))
        else:
            job.done.set_result(len(gone))

    def _write(self, run: Run) -> bool:
        """Write a run into the real database; False when it has to be kept elsewhere."""

        def work(session: Session) -> None:
            session.merge(run)
            if self.database.in_memory:
                session.flush()
                queries.keep_newest(session, MEMORY_RUNS)

        try:
            self._persistently(work)
        except Exception as error:
            if is_about_one_run(error):
                self._refuse(run.id, error)
                return True
            if self._failing is None:
                logger.warning("%s", diagnose(error, self.database.place).on_asking())
            self._failing = diagnose(error, self.database.place)
            self._retry_at = time.monotonic() + self._retry_seconds
            return False
        if self._failing is None:
            self.problem = None
        return True

    def _persistently(self, work: Callable[[Session], T]) -> T:
        for wait in _BACKOFF:
            try:
                return _in_transaction(self.database, work)
            except exc.DBAPIError as error:
                if is_about_one_run(error):
                    raise
            if not self.database.in_memory:
                # A connection may be what is broken: a server restarted, a mount came back.
                self.database.writer.dispose()
            time.sleep(wait)
        return _in_transaction(self.database, work)

    # --- what could not be written --------------------------------------------------------------

    def _keep(self, run: Run) -> None:
        if self.kept is None:
            self.kept = memory_database()

        def work(session: Session) -> int:
            session.merge(run)
            session.flush()
            queries.keep_newest(session, MEMORY_RUNS)
            return queries.count(session, _OLDEST_FIRST)

        kept = _in_transaction(self.kept, work)
        if self._failing:
            self.problem = self._failing.on_writing(kept)

    def _write_kept(self) -> bool:
        """Move runs from memory to the real database; whether all could be moved."""
        if self.kept is not None:
            with Session(self.kept.reader) as session:
                ids = queries.list_ids(session, _OLDEST_FIRST)
            if not all(self._write_one_kept(self.kept, run_id) for run_id in ids):
                return False
        self._failing = None
        self.problem = None
        return True

    def _write_one_kept(self, kept: Database, run_id: str) -> bool:
        with Session(kept.reader) as session:
            query = select(Run).where(Run.id == run_id).options(joinedload(Run.trace))
            run = session.scalars(query).one()
        if not self._write(run):
            return False
        # Last, so that a reader finds the run in one place or in both, never in none.
        _in_transaction(kept, lambda session: queries.delete_runs(session, [run_id], None))
        return True

    def _refuse(self, run_id: str, error: Exception) -> None:
        reason = self.database.place.scrub(str(getattr(error, "orig", None) or error)).split("\n", 1)[0][:200]
        self.problem = f"Run {run_id} cannot be recorded ({reason}); export it from the page to keep it."
        logger.error("%s", self.problem)


def _in_transaction(database: Database, work: Callable[[Session], T]) -> T:
    with Session(database.writer) as session, session.begin():
        return work(session)
