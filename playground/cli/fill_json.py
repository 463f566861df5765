"""`fill-json`: a JSON Schema or a list of tools in, JSON that holds to it out. Knows options; the engine fills."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playground.cli import knobs
from playground.cli.terminal import BadRequest, CommandError, inert, is_terminal, put, say

if TYPE_CHECKING:
    from playground.engine.structured import Structured

MAX_BYTES = 1_000_000
EPILOG = """\
[bold]Examples[/bold]

[dim]$[/dim] python -m playground fill-json --schema person.json "Anna is 30 and lives in Oslo. Describe her as JSON."

[dim]$[/dim] python -m playground fill-json --schema tools.json --json "What is the weather in Oslo?"

Exit codes: 0 valid, 1 failed or not valid, 2 not a valid request or schema, 130 stopped with Ctrl+C."""


def fill_json(  # noqa: PLR0917  (typer passes options by name)
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What the values are about.")],
    schema: Annotated[
        str,
        typer.Option("--schema", metavar="FILE", help="A JSON Schema, or a list of tools as OpenAI's; - reads stdin."),
    ],
    model: knobs.Model = None,
    confidence: knobs.Confidence = None,
    temperature: knobs.Temperature = None,
    seed: knobs.Seed = None,
    banned: knobs.Ban = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print what was compared and what does not hold, too.")
    ] = False,
    no_log: knobs.NoLog = False,
) -> None:
    """Fill a schema's values; the result always parses, and is checked against the schema.

    Valid is not right: whether a value is true, nobody checks.
    """
    given = {
        "prompt": prompt,
        "model": model,
        "confidence": confidence,
        "temperature": temperature,
        "seed": seed,
        "banned": banned,
    }
    found = _filled(_schema(schema), knobs.fields_of(given), log=not no_log)
    if as_json:
        put(json.dumps(body(found), ensure_ascii=False) + "\n")
    else:
        put(f"{inert(found.text) if is_terminal(sys.stdout) else found.text}\n")
    if not found.valid:
        raise CommandError(f"It does not hold to the schema: {found.problems[0]}")


def body(found: Structured) -> dict[str, Any]:
    """A result as JSON."""
    slots = [
        {
            "path": slot.path,
            "kind": slot.kind,
            "text": slot.text,
            "compared": [{"what": what, "score": score} for what, score in slot.compared],
            "again": slot.again,
        }
        for slot in found.slots
    ]
    return {"text": found.text, "valid": found.valid, "problems": found.problems, "slots": slots}


def _schema(file: str) -> object:
    name = "stdin" if file == "-" else file
    if file == "-":
        raw = sys.stdin.buffer.read(MAX_BYTES + 1) if sys.stdin is not None else b""
    else:
        try:
            with Path(file).open("rb") as opened:
                raw = opened.read(MAX_BYTES + 1)
        except OSError as error:
            raise BadRequest(f"{file} cannot be read ({error.strerror}); name a file with a JSON Schema.") from None
    if len(raw) > MAX_BYTES:
        raise BadRequest(f"{name} is over {MAX_BYTES:,} bytes; ask for fewer fields at once.")
    try:
        return json.loads(raw)
    except UnicodeDecodeError:
        raise BadRequest(f"{name} is not UTF-8 text; convert it first.") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"{name} is not JSON ({error.msg} in line {error.lineno}); mend it.") from None
    except (RecursionError, ValueError):
        raise BadRequest(f"{name} goes too deep or holds too long a number; make it simpler.") from None


def _filled(schema: object, values: dict[str, Any], *, log: bool) -> Structured:
    from playground.cli.running import open_engine, record
    from playground.engine.structured import StructuredFilling
    from playground.infill.pieces import SchemaError
    from playground.request import RequestError
    from playground.settings import get_settings

    engine = open_engine(settings := get_settings())
    told = ""
    filling: StructuredFilling | None = None
    try:
        filling = StructuredFilling(engine, schema, values)
        for progress in filling:
            if is_terminal(sys.stderr) and progress.doing != told:
                told = progress.doing
                say(inert(f"{told} …"))
        assert filling.result is not None
        for trace in filling.kept if log else ():
            record(trace, settings)
        return filling.result
    except (RequestError, SchemaError) as error:
        raise BadRequest(str(error)) from None
    except KeyboardInterrupt:
        if filling is not None:
            filling.cancel()
        raise
    finally:
        engine.close()
