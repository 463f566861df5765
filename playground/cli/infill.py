"""`infill`: a text with blanks in, the filled text out. Knows options; the engine's filling does the work."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playground.cli import knobs
from playground.cli.terminal import BadRequest, CommandError, inert, is_terminal, put, say

if TYPE_CHECKING:
    from playground.engine.filling import Filled, Filling
    from playground.infill.markup import Template

MAX_CHARACTERS = 1_000_000
EPILOG = """\
[bold]Examples[/bold]

[dim]$[/dim] echo "She forgot her[[ ]] at home." | python -m playground infill -

[dim]$[/dim] python -m playground infill story.txt --blank 120:180=4-12 --keep 3 --json

Exit codes: 0 finished, 1 failed, 2 not a valid request, 130 stopped with Ctrl+C."""
_SPAN = re.compile(r"(\d+):(\d+)(?:=(\d+)(?:-(\d+))?)?")


def infill(  # noqa: PLR0917  (typer passes options by name)
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A text with blanks such as [[ ]], [[8]] or [[4-12]]; - reads stdin.")
    ],
    blanks: Annotated[
        list[str] | None,
        typer.Option(
            "--blank",
            metavar="FROM:TO[=LENGTH]",
            help="Blank out these characters, counted from 0, TO not included; LENGTH in tokens, 8 or 4-12. May be "
            "repeated. The text's own [[ ]] are then text.",
        ),
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="TEXT", help="What the whole text is.")] = None,
    keep: Annotated[int, typer.Option("--keep", min=1, max=16, metavar="NUMBER", help="Candidates wanted.")] = 1,
    model: knobs.Model = None,
    confidence: knobs.Confidence = None,
    correction: Annotated[
        str | None,
        typer.Option("--correction", metavar="NAME", help="rescore, causal or none. [dim]\\[default: rescore][/dim]"),
    ] = None,
    candidates: knobs.Candidates = None,
    temperature: knobs.Temperature = None,
    seed: knobs.Seed = None,
    banned: knobs.Ban = None,
    one_line: knobs.OneLine = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print every candidate with blanks, lengths and score.")
    ] = False,
    no_log: knobs.NoLog = False,
) -> None:
    """Fill the blanks of a text; what is outside them stays byte for byte.

    Where no length is given, several are tried, and the text decides that reads best.
    """
    given = {
        "prompt": prompt,
        "model": model,
        "confidence": confidence,
        "correction": correction,
        "candidates": candidates,
        "temperature": temperature,
        "seed": seed,
        "banned": banned,
        "one_line": one_line,
    }
    template = _template(_read(file), blanks or [])
    filling = _filled(template, knobs.fields_of(given), keep, log=not no_log)
    if as_json:
        put("".join(json.dumps(_body(found), ensure_ascii=False) + "\n" for found in filling.candidates))
    else:
        put("\n".join(_shown(found.text) for found in filling.candidates))
    if failed := filling.best.failed:
        raise CommandError(failed)


def _read(file: str) -> str:
    if file == "-":
        raw = sys.stdin.buffer.read(4 * MAX_CHARACTERS) if sys.stdin is not None else b""
    else:
        try:
            raw = Path(file).read_bytes()[: 4 * MAX_CHARACTERS]
        except OSError as error:
            raise BadRequest(f"{file} cannot be read ({error.strerror}); name a text file.") from None
    try:
        return raw.decode("utf-8")  # bytes, so that line ends stay as they are
    except UnicodeDecodeError:
        raise BadRequest(f"{'stdin' if file == '-' else file} is not UTF-8 text; convert it first.") from None


def _template(text: str, blanks: Sequence[str]) -> Template:
    from playground.infill.markup import Blank, MarkupError, cut, parse

    try:
        if not blanks:
            return parse(text)
        spans = []
        for blank in blanks:
            found = _SPAN.fullmatch(blank)
            if found is None:
                raise BadRequest(f"--blank takes FROM:TO or FROM:TO=LENGTH; {blank[:60]!r} was given.")
            low = None if found[3] is None else int(found[3])
            high = low if found[4] is None else int(found[4])
            spans.append((int(found[1]), int(found[2]), Blank(low, high)))
        template = cut(text, spans)
        for piece in template.blanks:
            parse(str(piece))  # the same bounds as for blanks that are written down
        return template
    except MarkupError as error:
        raise BadRequest(str(error)) from None


def _filled(template: Template, values: dict[str, Any], keep: int, *, log: bool) -> Filling:
    from playground.cli.running import open_engine, record
    from playground.engine.filling import Filling
    from playground.request import RequestError
    from playground.settings import get_settings

    engine = open_engine(settings := get_settings())
    told = ""
    filling: Filling | None = None
    try:
        filling = Filling(engine, template, values, keep=keep)
        for progress in filling:
            if is_terminal(sys.stderr) and progress.doing != told:
                told = progress.doing
                say(f"{told} …")
        for found in filling.candidates if log else ():
            record(found.trace, settings)
        return filling
    except RequestError as error:
        raise BadRequest(str(error)) from None
    except KeyboardInterrupt:
        if filling is not None:
            filling.cancel()
        raise
    finally:
        engine.close()


def _shown(text: str) -> str:
    """For a terminal without anything that it would obey; for a pipe as it is."""
    return f"{inert(text)}\n" if is_terminal(sys.stdout) else text


def _body(found: Filled) -> dict[str, Any]:
    score = found.score if found.score > float("-inf") else None
    return {"text": found.text, "blanks": found.blanks, "lengths": found.lengths, "score": score}
