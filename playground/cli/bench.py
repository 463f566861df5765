"""`bench`: measure this machine and print tables or JSON. Knows options and exit codes; `labs.bench` measures."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playground.cli.terminal import BadRequest, CommandError, PlainConsole, is_terminal, put, say

if TYPE_CHECKING:
    from playground.labs.bench import Options
    from playground.labs.bench_results import Report

PARTS = ("startup", "forward", "run", "cache", "batch", "page", "player")
"""Named here too, because the benchmark itself imports torch; a test compares them."""
DEFAULT_PARTS = PARTS[:-2]
WHAT, HOW = "What is measured", "How"

EPILOG = """\
[bold]Examples[/bold]

[dim]$[/dim] python -m playground bench --steps 8 --length 128

[dim]$[/dim] python -m playground bench --only forward,cache --repeats 3 --json

All parts take some minutes on two cores; --repeats 1 gives a first impression in a fifth of that."""


def bench(  # noqa: PLR0917  (typer passes options by name)
    steps: Annotated[
        int,
        typer.Option("--steps", "-s", metavar="FORWARDS", help="Forwards of the run part.", rich_help_panel=WHAT),
    ] = 8,
    length: Annotated[
        int,
        typer.Option("--length", "-n", metavar="TOKENS", help="Canvas of the run part.", rich_help_panel=WHAT),
    ] = 128,
    block: Annotated[
        int,
        typer.Option("--block", "-b", metavar="TOKENS", help="Block of the run part; 0 is one.", rich_help_panel=WHAT),
    ] = 0,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="PARTS",
            help="Only these, parted by commas; else all but page and player.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option(
            "--page",
            metavar="",
            help="Also what a watching browser costs; needs playwright and Chromium.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    player: Annotated[
        bool,
        typer.Option(
            "--player",
            metavar="",
            help="Only the viewer, fed by a model that costs nothing; needs the same.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats",
            "-r",
            min=1,
            max=1000,
            metavar="TIMES",
            help="Measurements of each figure, after a warm-up; the median counts.",
            rich_help_panel=HOW,
        ),
    ] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the report as JSON.", rich_help_panel=HOW)
    ] = False,
) -> None:
    """Measure forwards, cache, batching, start-up and the page's cost on this machine.

    Parts: startup, forward (beside the machine's own matrix products), run (--steps and --length), cache, batch, page,
    player.
    """
    parts = parts_of(only, page=page, player=player)
    from playground.labs.bench import Options

    options = Options(parts, repeats, steps, length, block)
    if as_json:
        put(json.dumps(_measured(options, _nothing).body(), indent=2) + "\n")
        return
    from playground.cli.bench_tables import machine_line, table_of

    console = PlainConsole()
    report = _measured(options, lambda _, result: console.print(table_of(result)))
    console.print(machine_line(report.machine, report.repeats))


def parts_of(only: str | None, *, page: bool, player: bool) -> frozenset[str]:
    """The parts named in `only`, else all but page and player; with these two where they are asked for.

    The player by itself is measured by itself: it has another model.

    Raises:
        BadRequest: a part that there is not, or none.
    """
    if only is None:
        named = [] if player and not page else list(DEFAULT_PARTS)
    else:
        named = [name.strip() for name in only.split(",") if name.strip()]
    if unknown := next((name for name in named if name not in PARTS), None):
        raise BadRequest(f"There is no part called {unknown[:60]!r}; choose from {', '.join(PARTS)}.")
    asked = {"page": page, "player": player}
    chosen = frozenset(named) | {name for name, wanted in asked.items() if wanted}
    if not chosen:
        raise BadRequest(f"Nothing is left to measure; choose from {', '.join(PARTS)}.")
    return chosen


def _measured(options: Options, done: Callable[[str, Any], None]) -> Report:
    from playground.denoisers.base import DenoiserError
    from playground.labs.bench import measure
    from playground.labs.bench_runs import BenchError
    from playground.request import RequestError
    from playground.settings import get_settings

    tell = say if is_terminal(sys.stderr) else _nothing
    try:
        return measure(options, get_settings(), tell=tell, done=done)
    except RequestError as error:
        raise BadRequest(str(error)) from None
    except (BenchError, DenoiserError) as error:
        raise CommandError(str(error)) from None


def _nothing(*_: object) -> None:
    return None
