"""Alembic's entry point; `playground.runlog.migrate` calls it with an open connection.

Logging is left to the app: Alembic's usual `fileConfig` would replace the root logger's handlers.
"""

from __future__ import annotations

from typing import Any, Literal

from alembic import context

from playground.runlog.tables import Base, UtcDateTime


def _render(kind: str, item: Any, _autogenerate: Any) -> str | Literal[False]:
    """Migrations name the database's own types: they must still run when our classes have moved on."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("Migrations run from the program: start the app, or call playground.runlog.migrate.upgrade.")

context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=context.config.attributes["version_table"],
    render_as_batch=True,
    render_item=_render,
)
with context.begin_transaction():
    context.run_migrations()
