"""One canvas from all masks to none, on random logits, against a plain statement of the whole run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.request import Confidence, GenerationRequest, Schedule, StopRule
from playground.sampling.sampler import ALTERNATIVES, Sampler, SamplerError, Step
from playground.sampling.schedule import COUNTED, STEPPED, plan_blocks
from tests.sampling import plain
from tests.sampling.plain import requests

VOCABULARY, MASK, STOPS = 9, 4, (0, 7)
CPU = torch.device("cpu")
seeds = st.integers(0, 2**32 - 1)


def new_sampler(request: GenerationRequest, seed: int = 1) -> Sampler:
    """A sampler for the tiny vocabulary."""
    return Sampler(request, mask_id=MASK, stop_ids=STOPS, seed=seed, device=CPU)


def ask(**knobs: object) -> GenerationRequest:
    """A request of eight positions."""
    return GenerationRequest.model_validate({"prompt": "x", "length": 8, "steps": 8, "block": 0, **knobs})


class Model:
    """Random logits, the mask's always the largest; the n-th call is a pure function of the seed."""

    def __init__(
        self, seed: int, *, scale: float = 2.0, stops: float = 0.0, dtype: torch.dtype = torch.float64
    ) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._scale, self._stops, self._dtype = scale, stops, dtype

    def __call__(self, rows: int) -> torch.Tensor:
        """Logits for `rows` masked positions."""
        logits = self._scale * torch.randn((rows, VOCABULARY), generator=self._generator, dtype=torch.float64)
        logits[:, list(STOPS)] += self._stops
        logits[:, MASK] = 1000
        return logits.to(self._dtype)


@dataclass
class Seen:
    """A whole run: what was wanted before each step, the step, and the canvas after it."""

    wanted: list[list[int]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    canvases: list[list[int]] = field(default_factory=list)

    @property
    def order(self) -> list[set[int]]:
        """Positions committed in each step."""
        return [{commit.position for commit in step.commits} for step in self.steps]


def run(sampler: Sampler, model: Model) -> Seen:
    """The loop that the module's docstring promises."""
    seen = Seen()
    while not sampler.done:
        wanted = sampler.wanted()
        step = sampler.step(model(len(wanted)))
        seen.wanted.append(wanted)
        seen.steps.append(step)
        seen.canvases.append(list(sampler.canvas))
        assert len(seen.steps) <= len(sampler.canvas), "a forward was wasted"
    return seen


# --- the whole run, stated plainly -------------------------------------------------------------------


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("order", [c for c in Confidence if c is not Confidence.RANDOM])
@settings(max_examples=15)
@given(data=st.data(), seed=seeds, stops=st.sampled_from([-3.0, 0.0, 1.0]))
def test_a_run_equals_its_plain_statement(
    schedule: Schedule, order: Confidence, data: st.DataObject, seed: int, stops: float
) -> None:
    some = st.sampled_from([0.2, 0.5, 0.8])
    request_ = data.draw(
        requests(temperature=0.0, schedule=schedule, confidence=order, threshold=some, entropy_bound=some)
    )
    sampler, model = new_sampler(request_), Model(seed, stops=stops)
    steps = request_.steps if request_.schedule in STEPPED else request_.length
    blocks = [(b.start, b.end, b.steps) for b in plan_blocks(request_.length, request_.block, steps)]
    assert [(b.start, b.end, b.steps) for b in sampler.blocks] == blocks
    stated = plain.PlainRun(request_, MASK, STOPS, blocks)
    while not stated.done:
        assert not sampler.done
        assert sampler.wanted() == stated.wanted()
        block = stated.block
        logits = model(len(stated.wanted()))
        commits, forced = stated.step(logits.tolist())
        step = sampler.step(logits.clone())
        assert step.block == block
        assert {c.position: c.token_id for c in step.commits} == {at: token for at, (token, _) in commits.items()}
        for commit in step.commits:
            assert commit.confidence == pytest.approx(commits[commit.position][1], abs=1e-9)
        assert dict(step.forced) == forced
        assert sampler.canvas == stated.canvas
        assert step.masks_left == sampler.masks_left == stated.canvas.count(MASK)
    assert sampler.done


@pytest.mark.parametrize("order", [Confidence.MARGIN, Confidence.NEG_ENTROPY])
@given(seed=seeds, temperature=st.floats(0.3, 2.0), top_p=st.floats(0.1, 1.0), top_k=st.integers(0, 4))
def test_scores_are_taken_before_temperature_and_cuts(
    order: Confidence, seed: int, temperature: float, top_p: float, top_k: int
) -> None:
    """Which go first, how sure the model is and what else it considered: all on its raw probabilities."""
    knobs = {"temperature": temperature, "top_p": top_p, "top_k": top_k, "stop_rule": "off"}
    sampler = new_sampler(ask(steps=3, confidence=order, **knobs), seed)
    logits = Model(seed)(8)
    rows = [[-math.inf if i == MASK else value for i, value in enumerate(row)] for row in logits.tolist()]
    shares = [plain.softmax(row) for row in rows]
    step = sampler.step(logits)
    scores = [plain.confidence_of(order, p, 0, at) for at, p in enumerate(shares)]
    assert {c.position for c in step.commits} == plain.best(scores, 3)
    for c in step.commits:
        raw = shares[c.position]
        assert c.confidence == pytest.approx(raw[c.token_id])
        assert [i for i, _ in c.alternatives] == sorted(range(VOCABULARY), key=lambda i: -raw[i])[:ALTERNATIVES]
        assert [p for _, p in c.alternatives] == pytest.approx(sorted(raw, reverse=True)[:ALTERNATIVES])
    assert [(guess.position, guess.token_id) for guess in step.guesses] == [
        (at, plain.argmax(shares[at])) for at in range(8) if sampler.canvas[at] == MASK
    ]


# --- invariants, for every request -------------------------------------------------------------------


@given(requests(), seeds, st.sampled_from([-3.0, 0.0, 1.0]))
def test_what_holds_for_every_run(request_: GenerationRequest, seed: int, stops: float) -> None:
    sampler = new_sampler(request_, seed)
    seen = run(sampler, Model(seed, stops=stops, dtype=torch.float32))
    blocks = sampler.blocks
    # Nothing is masked at the end; no step is empty; no forward beyond one a position or one a step.
    assert sampler.masks_left == 0
    assert MASK not in sampler.canvas
    assert all(step.commits for step in seen.steps)
    assert len(seen.steps) <= request_.length
    if request_.schedule in STEPPED:
        assert len(seen.steps) <= request_.steps
    before = [MASK] * request_.length
    for wanted, step, canvas in zip(seen.wanted, seen.steps, seen.canvases, strict=True):
        block = blocks[step.block]
        changed = {c.position: c.token_id for c in step.commits} | dict(step.forced)
        assert len(changed) == len(step.commits) + len(step.forced)
        # The mask is no token, committed tokens stay, and what a step says is what happened.
        assert MASK not in changed.values()
        assert all(before[at] == MASK for at in changed)
        assert canvas == [changed.get(at, token) for at, token in enumerate(before)]
        assert step.masks_left == canvas.count(MASK)
        # Commits are the model's, inside the block at work, whose predecessors are finished.
        assert {c.position for c in step.commits} <= set(wanted) <= set(range(block.start, block.end))
        assert MASK not in before[: block.start]
        assert [c.position for c in step.commits] == sorted(c.position for c in step.commits)
        # Alternatives are real candidates, best first; guesses are for the block's masks that are left.
        for c in step.commits:
            ids, shares = [i for i, _ in c.alternatives], [p for _, p in c.alternatives]
            assert 1 <= len(ids) == len(set(ids)) <= ALTERNATIVES
            assert shares == sorted(shares, reverse=True)
            assert MASK not in ids
            assert all(0 < p <= 1.0001 for p in [*shares, c.confidence])
            assert dict(c.alternatives).get(c.token_id, c.confidence) == pytest.approx(c.confidence)
        if not sampler.done or canvas != seen.canvases[-1]:
            left = [at for at in range(block.start, block.end) if canvas[at] == MASK]
            assert [guess.position for guess in step.guesses] == left
            assert all(g.token_id != MASK and 0 < g.confidence <= 1.0001 for g in step.guesses)
            assert all(g.alternatives[0][0] == g.token_id for g in step.guesses)
        before = canvas


@given(requests(end_at_stop=False, schedule=st.sampled_from(sorted(COUNTED))), seeds)
def test_counted_schedules_commit_what_they_planned(request_: GenerationRequest, seed: int) -> None:
    sampler = new_sampler(request_, seed)
    seen = run(sampler, Model(seed))
    counts = plain.even_counts if request_.schedule is Schedule.EVEN else plain.cosine_counts
    planned = [n for b in sampler.blocks for n in counts(b.end - b.start, b.steps)]
    assert [len(step.commits) for step in seen.steps] == planned
    assert len(planned) == min(request_.steps, request_.length)


@given(requests(end_at_stop=False), seeds)
def test_steps_beyond_the_canvas_add_no_forwards(request_: GenerationRequest, seed: int) -> None:
    exact = request_.model_copy(update={"steps": request_.length})
    beyond = request_.model_copy(update={"steps": 1024})
    runs = [run(new_sampler(r, seed), Model(seed)) for r in (exact, beyond)]
    assert runs[0].steps == runs[1].steps


def test_a_threshold_of_nought_takes_a_block_a_forward_and_one_of_one_a_position() -> None:
    lenient = run(new_sampler(ask(schedule="threshold", threshold=0.0, block=3, end_at_stop=False)), Model(1))
    assert lenient.order == [{0, 1, 2}, {3, 4, 5}, {6, 7}]
    strict = run(new_sampler(ask(schedule="threshold", threshold=1.0, end_at_stop=False)), Model(1))
    assert len(strict.steps) == 8


def test_leftmost_is_left_to_right() -> None:
    seen = run(new_sampler(ask(confidence="leftmost", length=6, block=4, end_at_stop=False)), Model(1))
    assert seen.order == [{at} for at in range(6)]


# --- seeds -------------------------------------------------------------------------------------------


@given(requests(), seeds)
def test_the_same_seed_gives_the_same_steps(request_: GenerationRequest, seed: int) -> None:
    first, second = (run(new_sampler(request_, seed), Model(seed)) for _ in range(2))
    assert first == second


def _different(**knobs: object) -> int:
    """How many of twenty seeds lead to different canvases or orders."""
    asked = ask(end_at_stop=False, **knobs)
    runs = [run(new_sampler(asked, seed), Model(5)) for seed in range(20)]
    return len({(tuple(seen.canvases[-1]), tuple(map(tuple, seen.order))) for seen in runs})


def test_different_seeds_draw_different_texts() -> None:
    assert _different(temperature=1.0) > 15


def test_a_random_order_is_seeded() -> None:
    assert _different(confidence="random") > 15


def test_without_draws_the_seed_does_not_matter() -> None:
    assert _different() == 1


# --- stop ids ----------------------------------------------------------------------------------------


def stop_favoured(rows: int, by: float = 5.0) -> torch.Tensor:
    """Logits that put stop id 7 first by a margin."""
    logits = torch.zeros((rows, VOCABULARY))
    logits[:, 7] = by
    logits[:, 2] = 1.0
    return logits


@pytest.mark.parametrize(
    ("rule", "first", "second"), [("off", 7, 7), ("suppressed", 2, 2), ("never-first", 2, 7), ("penalty", 7, 7)]
)
def test_each_stop_rule(rule: str, first: int, second: int) -> None:
    for at_once in (True, False):
        knobs = {"schedule": "threshold", "threshold": 0.0} if at_once else {"confidence": "leftmost"}
        sampler = new_sampler(ask(length=3, stop_rule=rule, stop_penalty=3.0, end_at_stop=False, **knobs))
        while not sampler.done:
            sampler.step(stop_favoured(len(sampler.wanted())))
        assert sampler.canvas == [first, second, second]


def test_a_penalty_is_taken_off_and_can_be_too_little_or_enough() -> None:
    for penalty, token in ((3.9, 7), (4.1, 2)):
        sampler = new_sampler(ask(length=1, stop_rule="penalty", stop_penalty=penalty))
        step = sampler.step(stop_favoured(1))
        assert sampler.canvas == [token]
        expected = plain.softmax([-penalty, 0, 1, 0, -math.inf, 0, 0, 5 - penalty, 0])
        assert step.commits[0].confidence == pytest.approx(expected[token], abs=1e-6)


def test_never_first_looks_at_the_canvas_and_not_at_the_block() -> None:
    """The first position of a later block may end the text."""
    sampler = new_sampler(ask(length=4, block=2, confidence="leftmost", stop_rule="never-first"))
    for _ in range(2):
        logits = stop_favoured(len(sampler.wanted()), by=-5)
        sampler.step(logits)
    step = sampler.step(stop_favoured(2))
    assert sampler.canvas == [2, 2, 7, 7]
    assert step.forced == ((3, 7),)


def commit(sampler: Sampler, tokens: dict[int, int]) -> Step:
    """One step in which the model is sure of `tokens` and of nothing else."""
    logits = torch.zeros((len(sampler.wanted()), VOCABULARY))
    for row, at in enumerate(sampler.wanted()):
        logits[row, tokens.get(at, 1)] = 20.0 if at in tokens else 0.5
    return sampler.step(logits)


def test_the_text_ends_once_all_before_its_first_stop_is_there() -> None:
    sampler = new_sampler(ask(length=8, block=4, schedule="threshold", stop_rule="off"))
    assert commit(sampler, {2: 7, 3: 0}).forced == ()
    assert not sampler.done
    assert commit(sampler, {1: 5}).forced == ()
    last = commit(sampler, {0: 6})
    assert last.forced == ((4, 7), (5, 7), (6, 7), (7, 7))
    assert last.masks_left == 0
    assert last.guesses == ()
    assert sampler.done
    assert sampler.canvas == [6, 5, 7, 0, 7, 7, 7, 7]


def test_a_stop_behind_another_does_not_count() -> None:
    sampler = new_sampler(ask(length=4, schedule="threshold", stop_rule="off"))
    commit(sampler, {3: 7})
    assert commit(sampler, {0: 0}).forced == ((1, 0), (2, 0))
    assert sampler.done


def test_without_end_at_stop_the_canvas_is_filled_by_the_model() -> None:
    sampler = new_sampler(ask(length=4, schedule="threshold", stop_rule="off", end_at_stop=False))
    commit(sampler, {0: 7})
    assert not sampler.done
    commit(sampler, {1: 2, 2: 3, 3: 7})
    assert sampler.done
    assert sampler.canvas == [7, 2, 3, 7]


# --- what cannot be used -----------------------------------------------------------------------------


def fails(sampler: Sampler, logits: torch.Tensor) -> None:
    """The sampler refuses with a sentence and stays as it was."""
    canvas, done = list(sampler.canvas), sampler.done
    with pytest.raises(SamplerError) as caught:
        sampler.step(logits)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert (sampler.canvas, sampler.done) == (canvas, done)


@given(requests(length=6, block=0), seeds, st.integers(0, 5), st.sampled_from([math.nan, math.inf]), st.booleans())
def test_logits_that_are_not_numbers_are_refused(
    request_: GenerationRequest, seed: int, row: int, value: float, everywhere: bool
) -> None:
    """In whichever row, chosen or not: a guess that is not a number could not be shown either."""
    sampler = new_sampler(request_)
    spoiled = Model(seed)(6)
    spoiled[row, slice(None) if everywhere else 2] = value
    fails(sampler, spoiled)
    # A refused forward uses up no draw: the run goes on as if it had not been.
    assert run(sampler, Model(seed)) == run(new_sampler(request_), Model(seed))


def test_a_row_with_nothing_allowed_is_refused() -> None:
    logits = torch.full((8, VOCABULARY), -math.inf)
    logits[:, MASK] = 3.0
    fails(new_sampler(ask()), logits)


@pytest.mark.parametrize("rows", [0, 3, 9])
def test_the_wrong_number_of_rows_is_refused(rows: int) -> None:
    fails(new_sampler(ask()), torch.zeros((rows, VOCABULARY)))


@pytest.mark.parametrize("early", [True, False])
def test_a_finished_run_wants_nothing_and_takes_nothing(early: bool) -> None:
    sampler = new_sampler(ask(schedule="threshold", threshold=0.0, stop_rule="off"))
    commit(sampler, {0: 7} if early else dict.fromkeys(range(8), 3))
    assert sampler.done
    assert sampler.wanted() == []
    fails(sampler, torch.zeros((0, VOCABULARY)))
    fails(sampler, torch.zeros((1, VOCABULARY)))


def test_every_stop_rule_and_schedule_is_reachable() -> None:
    """The strategies above draw from these; a new one needs a plain statement."""
    assert len(Schedule) == 5
    assert len(Confidence) == 5
    assert len(StopRule) == 4
