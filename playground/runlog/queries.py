"""Questions to the run log, asked in an open session. It must not know where the database is.

`without` names runs that the store already has in its hands (see `writer`), so that none is counted twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, or_, select
from sqlalchemy.orm import Session

from playground.runlog.records import storable, to_trace
from playground.runlog.rows import COLUMNS, RunFilter, RunRow
from playground.runlog.tables import Run, StoredTrace
from playground.trace import Trace

_ROW = [getattr(Run, name) for name in COLUMNS]
_CHUNK = 500
MAX_FAMILY = 300
"""Most runs of a tree that are listed; fewer than a statement may have variables."""


def chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """`ids` in portions that fit one statement; databases limit its variables."""
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]


def list_runs(session: Session, wanted: RunFilter, without: Collection[str] = ()) -> list[RunRow]:
    """The page of runs that `wanted` describes."""
    statement = _page(select(*_ROW).where(*_conditions(wanted, without)), wanted)
    return [RunRow(*row) for row in session.execute(statement)]


def list_ids(session: Session, wanted: RunFilter, without: Collection[str] = ()) -> list[str]:
    """Ids of the page of runs that `wanted` describes."""
    return list(session.scalars(_page(select(Run.id).where(*_conditions(wanted, without)), wanted)))


def rows_of(session: Session, ids: Sequence[str]) -> list[RunRow]:
    """The rows of these runs in the order of `ids`; runs that are gone are left out."""
    found = {row.id: RunRow(*row) for row in session.execute(select(*_ROW).where(Run.id.in_(ids)))}
    return [found[run_id] for run_id in ids if run_id in found]


def count(session: Session, wanted: RunFilter, without: Collection[str] = ()) -> int:
    """How many runs `wanted` matches on all its pages."""
    return session.scalar(select(func.count()).select_from(Run).where(*_conditions(wanted, without))) or 0


def models(session: Session, visitor: str | None) -> set[str]:
    """Models that these runs used."""
    return set(session.scalars(select(Run.model).where(*_conditions(RunFilter(visitor=visitor))).distinct()))


def family(session: Session, run_id: str, visitor: str | None) -> list[tuple[int, RunRow]]:
    """A run's tree: the run it all began with, and every branch below it, each with its depth; parents come first.

    A parent that is gone, or is another visitor's, ends the way up.
    """
    mine = _conditions(RunFilter(visitor=visitor))

    def found(*conditions: ColumnElement[bool]) -> list[RunRow]:
        statement = select(*_ROW).where(*conditions, *mine).order_by(Run.created, Run.id)
        return [RunRow(*row) for row in session.execute(statement)]

    root = next(iter(found(Run.id == storable(run_id))), None)
    seen = {run_id}
    while root is not None and root.parent_run_id is not None and root.parent_run_id not in seen:
        seen.add(root.parent_run_id)
        parent = next(iter(found(Run.id == root.parent_run_id)), None)
        if parent is None:
            break
        root = parent
    if root is None:
        return []
    below: dict[str, list[RunRow]] = {}
    level, reached = [root], {root.id}
    while level and len(reached) < MAX_FAMILY:
        level = [row for row in found(Run.parent_run_id.in_([row.id for row in level])) if row.id not in reached]
        level = level[: MAX_FAMILY - len(reached)]
        reached.update(row.id for row in level)
        for row in level:
            below.setdefault(row.parent_run_id or "", []).append(row)
    return list(_downwards(root, below))


def _downwards(root: RunRow, below: dict[str, list[RunRow]]) -> Iterator[tuple[int, RunRow]]:
    left = [(0, root)]
    while left:
        depth, row = left.pop()
        yield depth, row
        left += [(depth + 1, child) for child in reversed(below.get(row.id, []))]


def load_trace(session: Session, run_id: str, visitor: str | None) -> Trace | None:
    """The trace of a run, or None where there is no such run or it is another visitor's."""
    conditions = [Run.id == storable(run_id), *_conditions(RunFilter(visitor=visitor))]
    stored = session.scalar(select(StoredTrace).join(Run).where(*conditions))
    return None if stored is None else to_trace(stored)


def delete_runs(session: Session, ids: Iterable[str], visitor: str | None) -> set[str]:
    """Delete those of these runs that the visitor may delete, and say which; the traces go with them."""
    gone: set[str] = set()
    for chunk in chunks([storable(run_id) for run_id in ids]):
        conditions = [Run.id.in_(chunk), *_conditions(RunFilter(visitor=visitor))]
        gone.update(session.scalars(delete(Run).where(*conditions).returning(Run.id)))
    return gone


def keep_newest(session: Session, most: int) -> None:
    """Delete all but the newest runs."""
    old = list(session.scalars(select(Run.id).order_by(Run.created.desc(), Run.id.desc()).offset(most)))
    delete_runs(session, old, None)


def merged(rows: Iterable[RunRow], wanted: RunFilter) -> list[RunRow]:
    """Rows of several databases in one order, cut to the page that `wanted` describes."""
    ordered = sorted(rows, key=lambda row: row.id)
    known = [row for row in ordered if getattr(row, wanted.sort) is not None]
    known.sort(key=lambda row: getattr(row, wanted.sort), reverse=wanted.descending)
    ordered = known + [row for row in ordered if getattr(row, wanted.sort) is None]
    return ordered[wanted.offset : None if wanted.limit is None else wanted.offset + wanted.limit]


def _page(statement: Select[Any], wanted: RunFilter) -> Select[Any]:
    column = getattr(Run, wanted.sort)
    # The id makes the order total, so that pages neither repeat nor skip a run.
    order = (column.desc() if wanted.descending else column.asc()).nulls_last()
    return statement.order_by(order, Run.id).limit(wanted.limit).offset(wanted.offset)


def _conditions(wanted: RunFilter, without: Collection[str] = ()) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.visitor is not None:
        conditions.append(Run.visitor == storable(wanted.visitor))
    if wanted.model:
        conditions.append(Run.model == storable(wanted.model))
    if wanted.result:
        conditions.append(Run.result == storable(wanted.result))
    if search := storable(wanted.search):
        conditions.append(or_(*(column.icontains(search, autoescape=True) for column in (Run.prompt, Run.text))))
    if without:
        conditions.append(Run.id.not_in(without))
    return conditions
