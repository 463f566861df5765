"""`generate`: from the options to a request, and from there to a run shown in one of three ways.

Must not know how a run is followed or stopped (see `running`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from playground.cli import knobs
from playground.cli.terminal import BadRequest, is_terminal
from playground.presets import DEFAULT_PRESET, PRESETS

if TYPE_CHECKING:
    from playground.cli.views import View
    from playground.request import GenerationRequest

MAX_STDIN_CHARACTERS = 1_000_000
"""More is not read: the request would refuse it anyway."""

EPILOG = """\
[bold]Examples[/bold]

[dim]$[/dim] python -m playground generate "Why is the sky blue?" --watch

[dim]$[/dim] python -m playground generate "What is special about owls?" --preset any-order --length 32

[dim]$[/dim] echo "Write about rain." | python -m playground generate - --json | jq .masks_left

Exit codes: 0 finished, 1 failed, 2 not a valid request, 3 deadline, 130 stopped with Ctrl+C."""


def generate(  # noqa: PLR0917  (typer passes options by name)
    prompt: knobs.Prompt,
    preset: knobs.Preset = DEFAULT_PRESET,
    model: knobs.Model = None,
    length: knobs.Length = None,
    steps: knobs.Steps = None,
    block: knobs.Block = None,
    schedule: knobs.Schedule = None,
    confidence: knobs.Confidence = None,
    threshold: knobs.Threshold = None,
    correction: knobs.Correction = None,
    acceptance: knobs.Acceptance = None,
    candidates: knobs.Candidates = None,
    entropy_bound: knobs.EntropyBound = None,
    temperature: knobs.Temperature = None,
    top_p: knobs.TopP = None,
    top_k: knobs.TopK = None,
    seed: knobs.Seed = None,
    reproducible: knobs.Reproducible = None,
    banned: knobs.Ban = None,
    one_line: knobs.OneLine = None,
    stop_rule: knobs.StopRule = None,
    stop_penalty: knobs.StopPenalty = None,
    end_at_stop: knobs.EndAtStop = None,
    deadline: knobs.Deadline = None,
    as_json: knobs.AsJson = False,
    watch: knobs.Watch = False,
    no_log: knobs.NoLog = False,
    verbose: knobs.Verbose = False,
) -> None:
    """Denoise a canvas and print its text.

    The canvas starts as masks; each forward of the model commits some positions, in any order, until none is left.
    """
    options: dict[str, str | bool | list[str] | None] = {
        "model": model,
        "length": length,
        "steps": steps,
        "block": block,
        "schedule": schedule,
        "confidence": confidence,
        "threshold": threshold,
        "correction": correction,
        "acceptance": acceptance,
        "candidates": candidates,
        "entropy_bound": entropy_bound,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "seed": seed,
        "reproducible": reproducible,
        "banned": banned,
        "one_line": one_line,
        "stop_rule": stop_rule,
        "stop_penalty": stop_penalty,
        "end_at_stop": end_at_stop,
        "deadline": deadline,
    }
    request = request_of(prompt, preset, options)
    if watch and as_json:
        raise BadRequest("Both --watch and --json write to the terminal; choose one of them.")
    _direct_logging(verbose)
    from playground.cli.running import perform

    raise typer.Exit(perform(request, view_of(as_json, watch, verbose), log=not no_log))


def request_of(prompt: str, preset: str, options: Mapping[str, str | bool | list[str] | None]) -> GenerationRequest:
    """The preset's request with the options given beside it.

    Raises:
        BadRequest: what the request refuses, or a preset that there is not.
    """
    from playground.denoisers.catalogue import CATALOGUE
    from playground.request import RequestError, parse_request
    from playground.settings import get_settings

    if preset not in PRESETS:
        raise BadRequest(f"There is no preset called {preset[:60]!r}; choose from {', '.join(PRESETS)}.")
    values = {**PRESETS[preset].values, **knobs.fields_of(options), "prompt": _prompt(prompt)}
    try:
        request = parse_request(values, get_settings().limits)
    except RequestError as error:
        raise BadRequest(str(error)) from None
    if request.model not in CATALOGUE:  # the engine would say so too, but only once torch is imported
        raise BadRequest(f"There is no model called {request.model[:60]!r}; choose from: {', '.join(CATALOGUE)}.")
    return request


def _prompt(argument: str) -> str:
    if argument != "-":
        return argument
    # A text file ends with a line break that nobody meant to ask about.
    return sys.stdin.read(MAX_STDIN_CHARACTERS).rstrip("\r\n") if sys.stdin is not None else ""


def view_of(as_json: bool, watch: bool, verbose: bool) -> View:
    """How the run is shown: as JSON lines, as a live canvas where there is a terminal, else as text."""
    from playground.cli.views import JsonView, TextView

    if as_json:
        return JsonView(verbose)
    if watch and (is_terminal(sys.stdout) or is_terminal(sys.stderr)):
        from playground.cli.watching import WatchView

        return WatchView()
    return TextView(verbose)


def _direct_logging(verbose: bool) -> None:
    """What the rooms below log goes to stderr when asked for; else the sentences printed here say enough."""
    log = logging.getLogger("playground")
    log.addHandler(logging.StreamHandler() if verbose else logging.NullHandler())
