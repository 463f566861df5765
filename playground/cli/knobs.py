"""The options of `generate`: one for each field of the request, each with a sentence that teaches.

Values arrive as text and are validated by the request itself, so that every door refuses the same things in the same
words; the defaults named here only inform (a test compares them). Must not import the request: pydantic
would double the time that `--help` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.markup import escape

from playground.presets import DEFAULT_PRESET, PRESETS

CANVAS, ORDER, SAMPLING, ENDING, OUTPUT = "Canvas", "Order", "Sampling", "Ending", "Output"

_OWN_DEFAULTS: dict[str, object] = {
    "model": "pocket",
    "entropy_bound": 0.1,
    "candidates": 16,
    "banned": "none",
    "one_line": "off",
    "top_p": 1,
    "top_k": 0,
    "stop_rule": "never-first",
    "stop_penalty": 3,
    "end_at_stop": "end-at-stop",
    "seed": "drawn anew",
    "deadline": "none",
    "reproducible": "off",
}
DEFAULTS: dict[str, object] = {**_OWN_DEFAULTS, **PRESETS[DEFAULT_PRESET].values}
"""What `--help` says each field is when nothing is asked for."""


def _knob(field: str, *flags: str, panel: str, metavar: str = "", sentence: str) -> Any:
    default = escape(f"[default: {DEFAULTS[field]}]")
    return typer.Option(*flags, help=f"{escape(sentence)} [dim]{default}[/dim]", rich_help_panel=panel, metavar=metavar)


Prompt = Annotated[
    str,
    typer.Argument(help="What the text should be about; - reads it from stdin.", metavar="PROMPT", show_default=False),
]
Preset = Annotated[
    str,
    typer.Option(
        "--preset",
        help=f"Named settings to start from: {', '.join(PRESETS)}. Options given beside it win.",
        metavar="NAME",
        rich_help_panel=CANVAS,
    ),
]
Model = Annotated[
    str | None,
    _knob("model", "--model", panel=CANVAS, metavar="NAME", sentence="Who writes; `models` lists the names."),
]
Length = Annotated[
    str | None,
    _knob(
        "length",
        "--length",
        "-n",
        panel=CANVAS,
        metavar="TOKENS",
        sentence="Size of the canvas. It is fixed beforehand: that is how diffusion differs most from typing.",
    ),
]
Steps = Annotated[
    str | None,
    _knob(
        "steps",
        "--steps",
        "-s",
        panel=CANVAS,
        metavar="FORWARDS",
        sentence="Forwards to spend (even, cosine and ramp schedules). Fewer commit more at once: faster, and rougher.",
    ),
]
Block = Annotated[
    str | None,
    _knob(
        "block",
        "--block",
        "-b",
        panel=CANVAS,
        metavar="TOKENS",
        sentence="Positions worked on together, block after block; 0 is the whole canvas at once.",
    ),
]
Schedule = Annotated[
    str | None,
    _knob(
        "schedule",
        "--schedule",
        panel=ORDER,
        metavar="NAME",
        sentence="How many positions a forward commits: even, cosine, threshold, entropy-bound or ramp.",
    ),
]
Confidence = Annotated[
    str | None,
    _knob(
        "confidence",
        "--confidence",
        panel=ORDER,
        metavar="NAME",
        sentence="Which positions go first: probability, margin, neg-entropy, random or leftmost.",
    ),
]
Threshold = Annotated[
    str | None,
    _knob(
        "threshold",
        "--threshold",
        panel=ORDER,
        metavar="0..1",
        sentence="Every guess at least this probable is committed (threshold schedule); higher is slower and safer.",
    ),
]
Correction = Annotated[
    str | None,
    _knob(
        "correction",
        "--correction",
        panel=ORDER,
        metavar="NAME",
        sentence="What is taken back of earlier commits: none, causal (what reads wrong from left to right), or "
        "rescore (candidates are tried in the whole text).",
    ),
]
Acceptance = Annotated[
    str | None,
    _knob(
        "acceptance",
        "--acceptance",
        panel=ORDER,
        metavar="0..1",
        sentence="How likely a token must be beside the likeliest to stay (causal correction); 1 keeps only that one.",
    ),
]
Candidates = Annotated[
    str | None,
    _knob(
        "candidates",
        "--candidates",
        panel=ORDER,
        metavar="TOKENS",
        sentence="Tokens tried at each position (rescore correction).",
    ),
]
EntropyBound = Annotated[
    str | None,
    _knob(
        "entropy_bound",
        "--entropy-bound",
        panel=ORDER,
        metavar="NATS",
        sentence="How much joint uncertainty one forward may commit (entropy-bound schedule).",
    ),
]
Temperature = Annotated[
    str | None,
    _knob(
        "temperature",
        "--temperature",
        "-t",
        panel=SAMPLING,
        metavar="0..2",
        sentence="0 takes the most probable token; higher draws more freely, so runs differ by seed.",
    ),
]
TopP = Annotated[
    str | None,
    _knob(
        "top_p",
        "--top-p",
        panel=SAMPLING,
        metavar="0..1",
        sentence="Draw only from the most probable tokens that together reach this mass; 1 is all of them.",
    ),
]
TopK = Annotated[
    str | None,
    _knob(
        "top_k",
        "--top-k",
        panel=SAMPLING,
        metavar="TOKENS",
        sentence="Draw only from this many most probable tokens; 0 is all of them.",
    ),
]
Seed = Annotated[
    str | None,
    _knob(
        "seed",
        "--seed",
        panel=SAMPLING,
        metavar="NUMBER",
        sentence="Fixes every draw on a device; the trace records the one that was used.",
    ),
]
Reproducible = Annotated[
    bool | None,
    _knob(
        "reproducible",
        "--reproducible",
        panel=SAMPLING,
        sentence="Run alone on the device, so that the same seed gives the same trace to the last bit.",
    ),
]
StopRule = Annotated[
    str | None,
    _knob(
        "stop_rule",
        "--stop-rule",
        panel=ENDING,
        metavar="NAME",
        sentence="What is done about models that end too early: off, penalty, never-first or suppressed.",
    ),
]
StopPenalty = Annotated[
    str | None,
    _knob(
        "stop_penalty",
        "--stop-penalty",
        panel=ENDING,
        metavar="LOGITS",
        sentence="How much less likely an end becomes under --stop-rule penalty.",
    ),
]
EndAtStop = Annotated[
    bool | None,
    _knob(
        "end_at_stop",
        "--end-at-stop/--no-end-at-stop",
        panel=ENDING,
        sentence="Stop once the text before an end is complete, or denoise what is behind it too.",
    ),
]
Deadline = Annotated[
    str | None,
    _knob(
        "deadline",
        "--deadline",
        panel=ENDING,
        metavar="SECONDS",
        sentence="Stop after this long on the device and keep the text so far (exit code 3).",
    ),
]
Ban = Annotated[
    list[str] | None,
    _knob(
        "banned", "--ban", panel=SAMPLING, metavar="TEXT", sentence="A word that may not stand there; may be repeated."
    ),
]
OneLine = Annotated[
    bool | None,
    _knob(
        "one_line",
        "--one-line",
        panel=SAMPLING,
        sentence="No line break in a blank; where nothing is kept behind it, one ends the text.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", metavar="", help="Print the trace as JSON lines, as it is made.", rich_help_panel=OUTPUT),
]
Watch = Annotated[
    bool,
    typer.Option("--watch", "-w", metavar="", help="Watch the masks resolve in the terminal.", rich_help_panel=OUTPUT),
]
NoLog = Annotated[
    bool,
    typer.Option(
        "--no-log", metavar="", help="Leave the run out of the run log (`runs` lists it).", rich_help_panel=OUTPUT
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        metavar="",
        help="Say on stderr what is going on, even where nobody watches.",
        rich_help_panel=OUTPUT,
    ),
]


def value_of(text: str) -> int | float | str:
    """A number where `text` is one; else the text, for the request to refuse in its own words."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


NAMES = frozenset({"model", "schedule", "confidence", "correction", "stop_rule"})
"""Fields that stay text, even where someone writes a number."""


def fields_of(options: Mapping[str, str | bool | list[str] | None]) -> dict[str, Any]:
    """The options that were given, as request fields."""
    given = {field: value for field, value in options.items() if value is not None}
    return {
        field: value_of(value) if isinstance(value, str) and field not in NAMES else value
        for field, value in given.items()
    }
