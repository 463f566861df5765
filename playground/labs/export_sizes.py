"""How large exports are: the player's page and its parts, for runs of given sizes. `bench --player` prints it.

The runs are made up, with candidates and guesses as real ones have them, so that no model is needed and any size can be
asked for. Must not know pages or browsers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from playground.export.bundle import bundle, stylesheet
from playground.export.html import ENTRY, STYLES, trace_html
from playground.labs import examples
from playground.trace import Candidate, Change, Frame, Guess, Header, Kind, Outcome, Result, Timings, Trace

SIZES = ((48, 48), (512, 128), (1024, 1024))
"""Positions and steps of the runs that are measured."""
CANDIDATES = 5
GUESSES = 8
_WORDS = " the a of and to in is that it was for on are with as his they at be this from have or by one had not but"


@dataclass(frozen=True, slots=True)
class PlayerSize:
    """Bytes of an exported player: `page` in all, of which `viewer` is script and styles and `trace` the run.

    `per_step` is what a step adds.
    """

    positions: int
    steps: int
    page: int
    viewer: int
    trace: int

    @property
    def per_step(self) -> float:
        """Bytes a step."""
        return self.trace / self.steps if self.steps else 0.0


def player_size(trace: Trace) -> PlayerSize:
    """The sizes of this run's player."""
    viewer = len(bundle(ENTRY).encode()) + len(stylesheet(*STYLES).encode())
    page = len(trace_html(trace).encode())
    lines = len(trace.to_lines().encode())
    return PlayerSize(trace.header.length, len(trace.frames), page, viewer, lines)


def player_sizes(sizes: Sequence[tuple[int, int]] = SIZES) -> list[PlayerSize]:
    """The recorded runs' players, then those of made-up runs of these sizes."""
    recorded = [player_size(example.trace) for example in examples.load()]
    return recorded + [player_size(made_up(positions, steps)) for positions, steps in sizes]


def made_up(positions: int, steps: int, seed: int = 1) -> Trace:
    """A run that commits its canvas in random order, about the same number of positions each step."""
    draw = random.Random(seed)
    trace = Trace(_header(positions, steps, seed))
    order = draw.sample(range(positions), positions)
    for step in range(1, steps + 1):
        chosen = order[positions * (step - 1) // steps : positions * step // steps]
        masked = order[positions * step // steps :]
        changes = tuple(_change(draw, at) for at in chosen)
        sure = [change.confidence or 0.0 for change in changes]
        guesses = tuple(_guess(draw, at) for at in draw.sample(masked, min(GUESSES, len(masked))))
        least, mean = (min(sure), sum(sure) / len(sure)) if sure else (None, None)
        trace.append(
            Frame(step, 0, step, len(masked), changes, least, mean, 0.123456, 0.123456 * step, guesses=guesses)
        )
    text = "".join(cell.text for cell in trace.canvas_at(steps))
    trace.append(Outcome(Result.FINISHED, text, "", positions, steps, Timings(total=1.0)))
    return trace


def _header(positions: int, steps: int, seed: int) -> Header:
    return Header(
        run_id="0" * 24,
        created="2026-01-01T00:00:00.000+00:00",
        model="made-up",
        model_name="Made up",
        request={"prompt": "A made-up run.", "length": positions, "steps": steps},
        seed=seed,
        prompt="A made-up run.",
        prompt_tokens=4,
        length=positions,
        blocks=((0, positions, steps),),
        stop_ids=(2,),
        device="none",
        dtype="none",
    )


def _change(draw: random.Random, at: int) -> Change:
    others = [_candidate(draw) for _ in range(CANDIDATES)]
    others.sort(key=lambda candidate: -candidate.probability)
    best = others[0]
    return Change(at, Kind.COMMIT, best.token_id, best.text, best.probability, None, tuple(others))


def _candidate(draw: random.Random) -> Candidate:
    word = draw.choice(_WORDS.split())
    return Candidate(draw.randrange(49_152), f" {word}", round(draw.random(), 4))


def _guess(draw: random.Random, at: int) -> Guess:
    return Guess(at, f" {draw.choice(_WORDS.split())}", round(draw.random(), 4))
