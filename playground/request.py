"""What a run is asked to do: every knob, bounded, validated once, immutable.

The page, the command line, the Python door, the API, a share link and a row of the run log are all
projections of `GenerationRequest`. This module must not know any model, tokenizer, database or page;
limits of one deployment (see `playground.settings`) are checked by the engine, the bounds of the
format itself are checked here.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_serializer, field_validator

from playground.start import MAX_PARTS, Part, stored

MAX_LENGTH = 1024
"""Longest canvas, in tokens."""
MAX_STEPS = 1024
"""Most denoising steps."""
MAX_PROMPT_CHARACTERS = 100_000
"""Longest prompt the format accepts, in characters; a deployment usually sets a lower limit."""
MAX_SEED = 2**32 - 1


class RequestError(ValueError):
    """A request that cannot be run; its text is one sentence that says what to do."""


class Schedule(StrEnum):
    """How many positions are committed in one forward (see `playground.sampling.schedule`)."""

    EVEN = "even"
    COSINE = "cosine"
    THRESHOLD = "threshold"
    ENTROPY_BOUND = "entropy-bound"
    RAMP = "ramp"


class Confidence(StrEnum):
    """Which masked positions go first (see `playground.sampling.confidence`)."""

    PROBABILITY = "probability"
    MARGIN = "margin"
    NEG_ENTROPY = "neg-entropy"
    RANDOM = "random"
    LEFTMOST = "leftmost"


class StopRule(StrEnum):
    """What is done to the logits of the model's stop ids."""

    OFF = "off"
    PENALTY = "penalty"
    NEVER_FIRST = "never-first"
    SUPPRESSED = "suppressed"


class Correction(StrEnum):
    """What is taken back of earlier commits (see `playground.sampling.correction`)."""

    NONE = "none"
    CAUSAL = "causal"
    RESCORE = "rescore"


def _whole(value: object) -> object:
    """Accept 8 and 8.0, as sliders send it; refuse True, "8" and 8.5."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a whole number")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("must be a whole number")
    return int(value)


def _finite(value: object) -> object:
    """Accept any finite int or float; refuse True, text, NaN and infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a finite number")
    try:
        number = float(value)
    except OverflowError:  # an int beyond every float
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_finite)]


def clean_text(text: str) -> str:
    """Text as people meant it: LF line ends, no control characters but newline and tab, valid UTF-8.

    Control characters (Unicode category Cc) carry no meaning in a prompt, cannot be stored by every
    database and reach us by pasting from terminals and PDFs; lone surrogates cannot be encoded.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")


class GenerationRequest(BaseModel):
    """One run, completely described.

    `length`, `steps` and `block` are counted in tokens, forwards and tokens; `block = 0` means the whole
    canvas is one block. `temperature = 0` proposes the most probable token; above it, tokens are drawn
    from the distribution cut by `top_k` (0 = no cut) and then by `top_p` (1 = no cut). `steps` belongs to
    the even, cosine and ramp schedules; the threshold and entropy-bound schedules take as many forwards as
    the text needs. `correction` takes commits back whose probability, read from left to right, is under `acceptance`
    times that of the best token there (causal), or, once the canvas is full, tries `candidates` tokens at each position
    and keeps the one that makes the whole text most probable (rescore); forwards it costs come on top of `steps`.
    `seed = None` lets the engine draw one; the trace's header records the seed used.

    `start` is what stands on the canvas at first: its length replaces `length`, and only blanks are denoised. No text
    of `banned` (in either case) appears in what is denoised, and no newline with `one_line`: before kept text it is
    never proposed, behind it it ends the text. `scored` has the finished text read once more, from left to right, by
    models that can. A branch names the run and the step that it goes on from.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=False)

    # Strict, because pydantic would otherwise take bytes, which come past the cleaning.
    prompt: str = Field(max_length=MAX_PROMPT_CHARACTERS, strict=True)
    model: str = Field(default="pocket", min_length=1, max_length=300)
    length: Whole = Field(default=48, ge=1, le=MAX_LENGTH)
    steps: Whole = Field(default=48, ge=1, le=MAX_STEPS)
    block: Whole = Field(default=8, ge=0, le=MAX_LENGTH)
    schedule: Schedule = Schedule.EVEN
    confidence: Confidence = Confidence.PROBABILITY
    threshold: Number = Field(default=0.9, ge=0.0, le=1.0)
    entropy_bound: Number = Field(default=0.1, ge=0.0, le=20.0)
    correction: Correction = Correction.NONE
    acceptance: Number = Field(default=0.3, ge=0.0, le=1.0)
    temperature: Number = Field(default=0.0, ge=0.0, le=2.0)
    top_p: Number = Field(default=1.0, gt=0.0, le=1.0)
    top_k: Whole = Field(default=0, ge=0, le=1_000_000)
    candidates: Whole = Field(default=16, ge=2, le=64)
    stop_rule: StopRule = StopRule.NEVER_FIRST
    stop_penalty: Number = Field(default=3.0, ge=0.0, le=100.0)
    end_at_stop: bool = True
    seed: Whole | None = Field(default=None, ge=0, le=MAX_SEED)
    deadline: Number | None = Field(default=None, gt=0.0, le=86_400.0)
    reproducible: bool = False
    start: tuple[Part, ...] = Field(default=(), max_length=MAX_PARTS)
    banned: tuple[Annotated[str, Field(min_length=1, max_length=200, strict=True)], ...] = Field(
        default=(), max_length=100
    )
    one_line: bool = False
    scored: bool = False
    parent_run_id: str | None = Field(default=None, max_length=64)
    parent_step: Whole | None = Field(default=None, ge=0, le=1_000_000)

    @field_validator("prompt", mode="before")
    @classmethod
    def _clean_prompt(cls, prompt: object) -> object:
        # Before pydantic's own check, which refuses lone surrogates with a message about code units.
        return clean_text(prompt) if isinstance(prompt, str) else prompt

    @field_serializer("start")
    def _start_without_what_is_not_said(self, start: tuple[Part, ...]) -> list[dict[str, Any]]:
        return stored(start)

    @field_validator("prompt", mode="after")
    @classmethod
    def _prompt_says_something(cls, prompt: str) -> str:
        if not prompt.strip():
            raise ValueError("is empty; write what the text should be about")
        return prompt


Limits: TypeAlias = Mapping[str, int]
"""Most that a deployment takes of "length" (tokens), "steps" (forwards) and "prompt" (characters)."""
FORMAT_LIMITS: Limits = MappingProxyType({"length": MAX_LENGTH, "steps": MAX_STEPS, "prompt": MAX_PROMPT_CHARACTERS})


def parse_request(values: Mapping[str, Any], limits: Limits = FORMAT_LIMITS) -> GenerationRequest:
    """Validate `values` into a request.

    Raises:
        RequestError: one sentence naming the first field that is wrong, what was sent and what is allowed.
    """
    try:
        request = GenerationRequest.model_validate(dict(values))
    except ValidationError as error:
        raise RequestError(_sentence(error, limits)) from None
    check_limits(request, limits)
    return request


def check_limits(request: GenerationRequest, limits: Limits) -> None:
    """Refuse what is over a deployment's limits.

    Raises:
        RequestError: one sentence with the limit.
    """
    for name in ("length", "steps"):
        if (asked := getattr(request, name)) > limits[name]:
            raise RequestError(f"{name.capitalize()} {asked} is over this app's limit; use at most {limits[name]}.")
    if len(request.prompt) > limits["prompt"]:
        raise RequestError(_too_long(len(request.prompt), limits))


def _too_long(count: int, limits: Limits) -> str:
    return f"The prompt has {count:,} characters; shorten it to {limits['prompt']:,} at most."


def _sentence(error: ValidationError, limits: Limits) -> str:
    first = error.errors(include_url=False)[0]
    kind, sent, context = first["type"], first.get("input"), first.get("ctx", {})
    where = str(first["loc"][0]) if first["loc"] else str(sent)
    name = where.replace("_", " ").capitalize()
    shown = "" if isinstance(sent, str) and len(sent) > 200 else f"; {_quoted(sent)} was sent"
    bounds = _bounds(where, limits)
    if where not in GenerationRequest.model_fields:
        known = ", ".join(GenerationRequest.model_fields)
        sentence = f"There is no setting called {where[:60]!r}; the settings are {known}."
    elif where == "prompt" and kind == "string_too_long":
        sentence = _too_long(len(str(sent)), limits)
    elif where == "prompt" and kind == "value_error":
        sentence = f"The prompt {context['error']}."
    elif kind in ("string_type", "bytes_type"):
        sentence = f"{name} must be text; {_quoted(sent)} was sent."
    elif kind == "missing":
        sentence = f"{name} is missing; add it to the request."
    elif choices := _choices(where):
        sentence = f"{name} {_shown(sent)[:60]!r} is unknown; choose {choices}."
    elif where in ("start", "banned"):
        sentence = _of_parts(where, first)
    elif kind == "value_error":
        sentence = f"{name} {context['error']}{bounds}{shown}."
    elif bounds:
        sentence = f"{name} must be{bounds}{shown}."
    else:
        sentence = f"{name} is not valid: {first['msg'].lower()}{shown}."
    return sentence


def _of_parts(where: str, error: Mapping[str, Any]) -> str:
    """What is wrong with one entry of a list."""
    inside = ".".join(str(step) for step in error["loc"][1:])
    said = str(error.get("ctx", {}).get("error", error["msg"]))
    return f"{where.capitalize()}{f' ({inside[:60]})' if inside else ''}: {said[:1].lower()}{said[1:]}."


def _quoted(value: object) -> str:
    """A number as it is, anything else in quotes."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"[:40]  # a page sends 2 as 2.0
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return _shown(value)[:40] if number else repr(_shown(value)[:40])


def _shown(value: object) -> str:
    """`value` as text; some integers are too long for that."""
    try:
        return str(value)
    except ValueError:
        return "a huge number"


def _choices(field: str) -> str:
    """The names a field can have, such as "'own' or 'all'"; empty where it is not a choice."""
    kind = GenerationRequest.model_fields[field].annotation
    if not (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return ""
    *others, last = [repr(choice.value) for choice in kind]
    return f"{', '.join(others)} or {last}"


def _bounds(field: str, limits: Limits) -> str:
    """The range of a numeric field in words, such as ' from 1 to 1024'."""
    info = GenerationRequest.model_fields.get(field)
    low: str | None = None
    high: str | None = None
    for rule in info.metadata if info else ():
        for limit in ("ge", "gt"):
            if (value := getattr(rule, limit, None)) is not None:
                low = f"{'above ' if limit == 'gt' else ''}{value:g}"
        if (value := getattr(rule, "le", None)) is not None:
            value = min(value, limits.get(field, value))
            high = f"{value:g}" if value < 1e6 else f"{value:,.0f}"
    if low is None or high is None:
        return ""
    return f" {low} and at most {high}" if low.startswith("above") else f" from {low} to {high}"
