"""The commands put together, and how each ends: an exit code, and one sentence on stderr where something is wrong.

Commands import what is slow when they run, so that help is instant.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from playground.cli import bench, fill_json, generate, infill, models, runs, serve, taking
from playground.cli.terminal import BROKEN_PIPE, CommandError, forget_stdout, prepare_streams, say
from playground.cli.train import train

INTERRUPTED = 130


class Commands(TyperGroup):
    """Ends with an exit code and a sentence: no usage walls, no tracebacks for what people did or the system lacks."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that was asked for; when standing alone, exit with its code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.TyperException as error:
            say(error.format_message())
            code = error.exit_code
        except typer.Abort:
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """See `TyperGroup`; a reader that went away ends the command quietly."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            forget_stdout()
            if error.errno == errno.EPIPE or isinstance(error, BrokenPipeError):
                raise typer.Exit(BROKEN_PIPE) from None
            raise CommandError(f"The command failed ({error.strerror or error}).") from error


app = typer.Typer(
    cls=Commands,
    name="playground",
    help="Unmask: watch a language model write all positions at once, from masks to text.",
    epilog='Start with: python -m playground generate "Why is the sky blue?" --watch',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command(epilog=generate.EPILOG)(generate.generate)
app.command(epilog=infill.EPILOG)(infill.infill)
app.command(epilog=fill_json.EPILOG)(fill_json.fill_json)
app.command()(models.models)
app.command()(runs.runs)
app.command(epilog=taking.EPILOG)(taking.export)
app.command()(taking.show)
app.command()(serve.serve)
app.command(epilog=bench.EPILOG)(bench.bench)
app.command()(serve.record)
app.add_typer(train)


def main() -> NoReturn:
    """The process's own entry."""
    prepare_streams()
    try:
        app(prog_name="python -m playground")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave_at_once()
        raise
    sys.exit(0)


def _leave_at_once() -> NoReturn:
    """A model's thread may be deep inside torch, which does not survive an orderly end of the interpreter."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(INTERRUPTED)
