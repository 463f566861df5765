"""`runs`: the newest runs of the run log, as a table or as JSON. Must not know SQL or models."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from playground.cli.terminal import CommandError, PlainConsole, inert, one_line, put

if TYPE_CHECKING:
    from playground.runlog.rows import RunRow


def runs(
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100_000, metavar="RUNS", help="How many, newest first.")
    ] = 20,
    search: Annotated[
        str, typer.Option("--search", metavar="TEXT", help="Only runs whose prompt or text holds this.")
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print a JSON array instead of the table.")
    ] = False,
) -> None:
    """List the newest runs of the run log, whoever made them."""
    rows = _newest(limit, search)
    if as_json:
        put(json.dumps([_body(row) for row in rows], indent=2) + "\n")
    elif rows:
        PlainConsole().print(_table(rows))
    else:
        put("No run matches.\n" if search.strip() else "There are no runs yet.\n")


def _newest(limit: int, search: str) -> list[RunRow]:
    # Its warnings would repeat the sentence below.
    logging.getLogger("playground").addHandler(logging.NullHandler())
    from playground.runlog.problems import RunLogError
    from playground.runlog.rows import RunFilter
    from playground.runlog.store import RunStore
    from playground.settings import get_settings

    with RunStore.open(get_settings().database_url) as store:
        if store.problem:
            raise CommandError(store.problem)
        try:
            return store.list_runs(RunFilter(limit=limit, search=search))
        except RunLogError as error:
            raise CommandError(str(error)) from None


def _body(row: RunRow) -> dict[str, object]:
    return {
        name: value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else value
        for name, value in asdict(row).items()
    }


def _table(rows: list[RunRow]) -> Table:
    # Narrow margins: in 80 columns prompt and text would otherwise have a word each.
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1, 0, 0), collapse_padding=True)
    table.add_column("When", no_wrap=True)
    table.add_column("Result", no_wrap=True)
    for heading in ("Tokens", "Forwards", "Seconds"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Prompt", ratio=2, min_width=12, overflow="ellipsis", no_wrap=True)
    table.add_column("Text", ratio=3, overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(
            row.created.astimezone().strftime("%Y-%m-%d %H:%M"),
            one_line(row.result) or "?",
            str(row.tokens),
            str(row.forwards),
            f"{row.total_seconds:.1f}",
            one_line(inert(row.prompt)),
            one_line(inert(row.text)),
        )
    return table
