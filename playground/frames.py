"""The parts of a trace as plain data: header, frames and what changed in them, outcome. Knows nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias


class Kind(StrEnum):
    """What happened to a position. `FORCE` fills without asking the model (padding after the end); `GIVEN` stood there
    before the first forward."""

    COMMIT = "commit"
    EDIT = "edit"
    REMASK = "remask"
    RENOISE = "renoise"
    INSERT = "insert"
    DELETE = "delete"
    FORCE = "force"
    GIVEN = "given"


class Result(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    DEADLINE = "deadline"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could stand at a position. `raw` is hex bytes when they are not UTF-8 by themselves."""

    token_id: int
    text: str
    probability: float
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One position that changed in a frame.

    `token_id` is None for `remask` and `delete`. `confidence` is the raw probability of the token as the
    model saw it (None where the model was not asked). `raw` holds the token's bytes as hex when they are
    not valid UTF-8 by themselves, so that a viewer joins neighbours before decoding. `alternatives` are the
    most probable tokens at that position in that forward, best first.
    """

    position: int
    kind: Kind
    token_id: int | None
    text: str
    confidence: float | None = None
    raw: str | None = None
    alternatives: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Guess:
    """The model's best token for a position that is still masked; `alternatives`: the most probable, itself first."""

    position: int
    text: str
    probability: float
    alternatives: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """What one denoising step changed.

    `step` counts frames from 1, `nfe` the model forwards so far, `confidence_min` and `confidence_mean` run
    over the tokens committed in this frame, `model_seconds` is the wall time of the forward that made it
    (shared by `batch` canvases), `elapsed` the seconds since the run left the queue. `guesses` lists only
    masked positions whose best guess changed since the frame before. `entropy_left` is the sum of the entropies, in
    nats, of the positions of the block at work that stay masked, as the forward saw them; None in traces from before
    it was kept.
    """

    step: int
    block: int
    nfe: int
    masks_left: int
    changes: tuple[Change, ...]
    confidence_min: float | None
    confidence_mean: float | None
    model_seconds: float
    elapsed: float = 0.0
    batch: int = 1
    guesses: tuple[Guess, ...] = ()
    entropy_left: float | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """What was asked, of which model, on which machine; written before the first frame.

    `blocks` is the plan: (start, end, steps) for each block, half-open, in canvas positions. `stop_texts` are the
    `stop_ids` in words, since a guess is known by its text alone. `start` is what stood on the canvas before the first
    frame, `pinned` the positions of it that never change. A branch names the run and the step it goes on from.
    """

    run_id: str
    created: str
    model: str
    model_name: str
    request: dict[str, Any]
    seed: int
    prompt: str
    prompt_tokens: int
    length: int
    blocks: tuple[tuple[int, int, int], ...]
    stop_ids: tuple[int, ...]
    device: str
    dtype: str
    versions: dict[str, str] = field(default_factory=dict)
    mode: str = "diffusion"
    note: str = ""
    stop_texts: tuple[str, ...] = ()
    start: tuple[Change, ...] = ()
    pinned: tuple[int, ...] = ()
    parent_run_id: str | None = None
    parent_step: int | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds on one monotonic clock, counted from the moment the run was submitted.

    `queue`: waiting for a place (and for the model to load); `prefill`: the prompt's forward; `first_canvas`:
    submission to the first frame; `model`: sum of the forwards; `total`: submission to the outcome.
    """

    queue: float = 0.0
    prefill: float = 0.0
    first_canvas: float | None = None
    model: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the run ended and what it produced; `tokens` counts useful tokens (before the first stop id).

    `score` is the mean log probability, in nats a token, of the text from the first blank on as a left-to-right
    reader of the same model sees it; None where that was not asked for or cannot be had.
    """

    result: Result
    text: str
    message: str
    tokens: int
    forwards: int
    timings: Timings
    score: float | None = None


Event: TypeAlias = Header | Frame | Outcome


@dataclass(frozen=True, slots=True)
class Cell:
    """One canvas position: masked when `token_id` is None. `step` is the frame of its last change."""

    token_id: int | None = None
    text: str = ""
    raw: str | None = None
    confidence: float | None = None
    step: int = 0
    kind: Kind | None = None
