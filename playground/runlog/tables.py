"""The tables of the run log. A change here needs a migration; a test compares the two.

Columns that repeat what the request or the trace says exist because lists filter, sort or show them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, ForeignKey, Index, MetaData
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, always aware and in UTC; SQLite itself would drop the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """What the database gets."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """What the program gets."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Constraints have names, because SQLite can only alter what it can name."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UtcDateTime, dict[str, Any]: JSON}  # noqa: RUF012


class Run(Base):
    """One run: who asked what of which model, and what came of it."""

    __tablename__ = "runs"
    # (visitor, created) answers "my newest runs" and every other question that names a visitor.
    __table_args__ = (
        Index(None, "visitor", "created"),
        Index(None, "created"),
        Index(None, "model"),
        Index(None, "parent_run_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    created: Mapped[datetime]
    visitor: Mapped[str]
    model: Mapped[str]
    model_name: Mapped[str]
    mode: Mapped[str]
    prompt: Mapped[str]
    text: Mapped[str]
    result: Mapped[str]
    message: Mapped[str]
    seed: Mapped[int] = mapped_column(BigInteger)
    length: Mapped[int]
    steps: Mapped[int | None]
    block: Mapped[int | None]
    schedule: Mapped[str | None]
    confidence: Mapped[str | None]
    threshold: Mapped[float | None]
    entropy_bound: Mapped[float | None]
    temperature: Mapped[float | None]
    top_p: Mapped[float | None]
    top_k: Mapped[int | None]
    stop_rule: Mapped[str | None]
    request: Mapped[dict[str, Any]]
    versions: Mapped[dict[str, Any]]
    device: Mapped[str]
    dtype: Mapped[str]
    tokens: Mapped[int]
    forwards: Mapped[int]
    queue_seconds: Mapped[float]
    prefill_seconds: Mapped[float]
    first_canvas_seconds: Mapped[float | None]
    model_seconds: Mapped[float]
    total_seconds: Mapped[float]
    # No foreign key: a branch may be written before, or outlive, the run that it came from.
    parent_run_id: Mapped[str | None]
    parent_step: Mapped[int | None]

    trace: Mapped[StoredTrace] = relationship(cascade="all, delete-orphan", passive_deletes=True)


class StoredTrace(Base):
    """The whole trace of a run: zlib over its JSON lines; `size` counts bytes before compression."""

    __tablename__ = "traces"

    run_id: Mapped[str] = mapped_column(ForeignKey(Run.id, ondelete="CASCADE"), primary_key=True)
    lines: Mapped[bytes]
    size: Mapped[int]
