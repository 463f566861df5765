"""`models`: what can be asked for by name, and whether it fits here. Reads the catalogue; loads nothing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from playground.cli.memory import available_gib
from playground.cli.terminal import PlainConsole, put
from playground.denoisers.catalogue import CATALOGUE, missing_files


def models(
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print a JSON array instead of the table.")
    ] = False,
) -> None:
    """List the models, what each is good at, and whether it fits this machine's free memory."""
    from playground.settings import get_settings

    free = available_gib()
    # So far every model comes with the app; the others will say what they have to fetch.
    missing = missing_files(get_settings().pocket)
    if as_json:
        known = None if free is None else round(free, 2)
        rows = [
            {
                **asdict(entry),
                "available_gib": known,
                "fits": None if free is None else entry.memory_gib <= free,
                "missing_files": missing,
            }
            for entry in CATALOGUE.values()
        ]
        put(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")
        return
    PlainConsole().print(_table(free, missing))


def _table(free: float | None, missing: list[str]) -> Table:
    caption = "" if free is None else f"This machine has {free:.1f} GiB free."
    if missing:
        caption += f"\nThe embedded model lacks {', '.join(missing)}; restore assets/pocket or set UNMASK_POCKET."
    table = Table(box=box.SIMPLE_HEAD, expand=True, caption=caption, caption_justify="left")
    table.add_column("Name", style="bold", no_wrap=True)
    for heading in ("Size", "Memory", "Context"):
        table.add_column(heading, justify="right")
    table.add_column("Fits")
    table.add_column("Licence")
    table.add_column("Good at", ratio=1, min_width=24)
    for name, entry in CATALOGUE.items():
        table.add_row(
            name,
            entry.parameters,
            f"{entry.memory_gib:g} GiB",
            f"{entry.context_limit:,}",
            "files missing" if missing else "?" if free is None else "yes" if entry.memory_gib <= free else "no",
            entry.licence,
            f"{entry.good_at}\nAttention: {entry.attention}.",
        )
    return table
