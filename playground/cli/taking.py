"""`export` and `show`: a run from the log or from a file, as another file or on the terminal.

Must not know SQL, nor how a file is made (see `playground.export`).
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from playground.cli.terminal import BadRequest, CommandError, inert, one_line, put, say
from playground.cli.views import counted, figures
from playground.export.formats import FORMATS, Look, file_name
from playground.trace import Trace, TraceError

LAST = "last"
_FORMATS = "\n\n".join(f"[bold]{name}[/bold]: {known.sentence}" for name, known in FORMATS.items())
EPILOG = f"""\
{_FORMATS}

[bold]Examples[/bold]

[dim]$[/dim] python -m playground export last

[dim]$[/dim] python -m playground export run.jsonl --as png --step 12 --output canvas.png

[dim]$[/dim] python -m playground export 4e792b4719422e53458b408d --as text --output -"""

Source = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's id (see runs --json), [bold]last[/bold] for the newest, a file, or - for standard input.",
        show_default=False,
    ),
]
Number = Annotated[int, typer.Option("--run", min=1, metavar="NUMBER", help="Which run of a file that holds several.")]
Step = Annotated[
    int | None,
    typer.Option(
        "--step", min=0, metavar="STEP", help="The canvas after so many steps. [dim]\\[default: the last][/dim]"
    ),
]


def export(  # noqa: PLR0917  (typer passes options by name)
    source: Source,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            "-f",
            metavar="FORMAT",
            help=f"One of {', '.join(FORMATS)}. [dim]\\[default: by the output's name, else html][/dim]",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to; - is standard output. [dim]\\[default: named after prompt and run][/dim]",
        ),
    ] = "",
    step: Step = None,
    dark: Annotated[bool, typer.Option("--dark", metavar="", help="Pictures on a dark ground.")] = False,
    number: Number = 1,
) -> None:
    """Write a run as a player to open offline, a GIF, a PNG of one step, JSON lines, CSV of its steps, or text."""
    name = _format_of(kind, output)
    trace = find(source, number)
    _check_step(trace, step)
    data = FORMATS[name].write(trace, Look(step, dark))
    if output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    path = Path(output or file_name(trace, name))
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror or error}); choose another --output.") from None
    put(f"{path}\n")


def show(source: Source, step: Step = None, number: Number = 1) -> None:
    """Print a run: its prompt, its text or its canvas at a step, and its figures."""
    from playground.export.lines import trace_text

    trace = find(source, number)
    _check_step(trace, step)
    shown = trace if step is None else Trace(trace.header, trace.frames[:step])
    say(f"{trace.header.model_name or trace.header.model}: {trace.header.prompt}")
    put(inert(trace_text(shown)) if step is None else f"{inert(_canvas(shown))}\n")
    if step is not None:
        left = sum(cell.token_id is None for cell in shown.canvas_at(len(shown.frames)))
        say(f"Step {step} of {len(trace.frames)}, {counted(left, 'mask')} left.")
    elif trace.outcome is not None:
        say(f"{trace.outcome.result.value.capitalize()}: {figures(trace.header, trace.outcome)}")
        if trace.outcome.message:
            say(trace.outcome.message)
    else:
        say(f"This run has no end; its file holds {counted(len(trace.frames), 'step')}.")


def find(source: str, number: int = 1) -> Trace:
    """The run that `source` names.

    Raises:
        BadRequest: there is no such run or file, or it is not a trace.
        CommandError: the file or the run log cannot be read.
    """
    path = Path(source)
    if source == "-":
        return _from_bytes(sys.stdin.buffer.read(), "Standard input", number)
    if source == LAST or not (path.exists() or path.suffix or len(path.parts) > 1):
        return _from_log(source)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{source} cannot be read ({error.strerror or error}).") from None
    return _from_bytes(data, path.name, number)


def _from_bytes(data: bytes, name: str, number: int) -> Trace:
    from playground.export.reading import read_traces

    try:
        traces = read_traces(data, one_line(name))
    except TraceError as error:
        raise BadRequest(str(error)) from None
    if number > len(traces):
        raise BadRequest(f"{name} holds {counted(len(traces), 'run')}; there is no --run {number}.")
    if len(traces) > 1 and number == 1:
        say(f"{name} holds {len(traces)} runs; this is the first, --run chooses another.")
    return traces[number - 1]


def _from_log(run_id: str) -> Trace:
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
            newest = store.list_runs(RunFilter(limit=1)) if run_id == LAST else []
            wanted = newest[0].id if newest else run_id
            trace = store.load_trace(wanted, None)
        except (RunLogError, TraceError) as error:
            raise CommandError(str(error)) from None
    if trace is None and run_id == LAST:
        raise BadRequest("There are no runs yet; make one with generate.")
    if trace is None:
        raise BadRequest(f"There is no run and no file called {run_id[:60]!r}; runs --json lists the runs' ids.")
    return trace


def _format_of(kind: str | None, output: str) -> str:
    """The format asked for, else the one that the output's name ends with, else the player."""
    ending = Path(output).suffix.lower().removeprefix(".")
    by_name = {"htm": "html", "txt": "text"}.get(ending, ending)
    name = kind or (by_name if by_name in FORMATS else "html")
    if name not in FORMATS:
        raise BadRequest(f"There is no format called {name[:60]!r}; choose from {', '.join(FORMATS)}.")
    if kind is None and by_name not in ("", *FORMATS):
        raise BadRequest(f"Files do not end in {ending[:20]!r} here; choose a format with --as.")
    return name


def _check_step(trace: Trace, step: int | None) -> None:
    if step is not None and step > len(trace.frames):
        raise BadRequest(f"There is no step {step}; this run has steps 0 to {len(trace.frames)}.")


def _canvas(trace: Trace) -> str:
    """The canvas as it stands, a block for each mask."""
    return "".join("▒" if cell.token_id is None else cell.text for cell in trace.canvas_at(len(trace.frames)))
