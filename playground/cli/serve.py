"""`serve` and `record`: the page on this machine, and the recorded runs that it shows. Must not know components."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from playground.cli.terminal import CommandError, put


def serve(
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where to listen; 0.0.0.0 lets other machines in. [dim]\\[default: 127.0.0.1][/dim]",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=1,
            max=65_535,
            metavar="NUMBER",
            help="Port of the page. [dim]\\[default: the first free one from 7860][/dim]",
        ),
    ] = None,
) -> None:
    """Serve the page until Ctrl+C."""
    try:
        _main_of_app()(host, port)
    except OSError as error:
        where = f"{host or '127.0.0.1'}, port {port or 'from 7860'}"
        raise CommandError(
            f"The page cannot be served at {where} ({error}); choose another --port or --host."
        ) from None


def record() -> None:
    """Make the recorded runs of the page anew, on the shipped weights."""
    from playground.engine.pipeline import PipelineError
    from playground.labs import examples

    try:
        for path in examples.record():
            put(f"{path}\n")
    except PipelineError as error:
        raise CommandError(str(error)) from None


def _main_of_app() -> Callable[[str | None, int | None], None]:
    """`main` of app.py, found beside the package: another app.py may stand in the current folder."""
    from playground.settings import ROOT

    spec = importlib.util.spec_from_file_location("app", ROOT / "app.py")
    if spec is None or spec.loader is None or not (ROOT / "app.py").is_file():
        raise CommandError(f"There is no app.py in {ROOT}; run this from a copy of the repository.")
    module = importlib.util.module_from_spec(spec)
    sys.modules["app"] = module
    spec.loader.exec_module(module)
    main: Callable[[str | None, int | None], None] = module.main
    return main
