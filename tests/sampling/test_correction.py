"""Taking back: what is committed in parallel ends as the text that reads well from left to right."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from playground.request import Confidence, Correction, GenerationRequest, Schedule
from playground.sampling.correction import first_rejected
from playground.sampling.sampler import Sampler, SamplerError, Step

VOCABULARY, MASK, STOP = 7, 3, 5
seeds = st.integers(0, 2**32 - 1)


@dataclass
class Language:
    """A left-to-right model as a function of the text before, and a denoiser that knows it more or less well."""

    seed: int
    noise: float
    forwards: int = 0
    made: list[Step] = field(default_factory=list)

    def causal(self, before: list[int]) -> list[float]:
        """Logits of the next token."""
        generator = torch.Generator().manual_seed(hash((self.seed, *before)) % 2**63)
        return (2 * torch.randn(VOCABULARY, generator=generator, dtype=torch.float64)).tolist()

    def drafts(self, canvas: list[int], wanted: list[int]) -> torch.Tensor:
        """A guess at every mask: the text that greedy decoding would write from here, blurred."""
        text = list(canvas)
        rows = []
        generator = torch.Generator().manual_seed(self.seed + self.forwards)
        for at in range(len(text)):
            if text[at] == MASK:
                row = torch.tensor(self.causal(text[:at]), dtype=torch.float64)
                row[MASK] = -math.inf
                text[at] = int(row.argmax())
                if at in wanted:
                    rows.append(row + self.noise * torch.randn(VOCABULARY, generator=generator, dtype=torch.float64))
        return torch.stack(rows) if rows else torch.zeros(0, VOCABULARY, dtype=torch.float64)

    def step(self, sampler: Sampler) -> Step:
        """One forward."""
        self.forwards += 1
        canvas = list(sampler.canvas)
        causal = [self.causal(canvas[:at]) for at in sampler.checked()]
        step = sampler.step(
            self.drafts(canvas, sampler.wanted()),
            torch.tensor(causal, dtype=torch.float64).reshape(len(causal), VOCABULARY),
        )
        self.made.append(step)
        return step


def greedy(language: Language, request: GenerationRequest) -> list[int]:
    """The text one token after another, filled up with its stop token behind the first."""
    text: list[int] = []
    while len(text) < request.length:
        if request.end_at_stop and STOP in text:
            text.append(STOP)
            continue
        row = language.causal(text)
        row[MASK] = -math.inf
        if not text and request.stop_rule == "never-first":
            row[STOP] = -math.inf
        text.append(max(range(VOCABULARY), key=row.__getitem__))
    return text


@st.composite
def corrected(draw: st.DrawFn, **fixed: object) -> GenerationRequest:
    """Any request with a causal correction."""
    values: dict[str, object] = {
        "prompt": "x",
        "length": draw(st.integers(1, 14)),
        "steps": draw(st.integers(1, 14)),
        "block": draw(st.integers(0, 9)),
        "schedule": draw(st.sampled_from(Schedule)),
        "confidence": draw(st.sampled_from(Confidence)),
        "threshold": draw(st.floats(0, 1)),
        "acceptance": draw(st.floats(0, 1)),
        "end_at_stop": draw(st.booleans()),
        "stop_rule": draw(st.sampled_from(["off", "never-first"])),
        "correction": Correction.CAUSAL,
    }
    return GenerationRequest.model_validate({**values, **fixed})


def new_sampler(request: GenerationRequest, seed: int = 1) -> Sampler:
    return Sampler(request, mask_id=MASK, stop_ids=(STOP,), seed=seed, device=torch.device("cpu"))


@given(corrected(acceptance=1.0, temperature=0.0), seeds, st.sampled_from([0.0, 1.0, 4.0]))
def test_at_acceptance_one_the_text_is_that_of_greedy_decoding(
    request_: GenerationRequest, seed: int, noise: float
) -> None:
    """Whatever the drafts, the schedule and the order; good drafts only make it quicker."""
    language, sampler = Language(seed, noise), new_sampler(request_)
    while not sampler.done:
        language.step(sampler)
    text, wanted = sampler.canvas, greedy(language, request_)
    end = wanted.index(STOP) + 1 if request_.end_at_stop and STOP in wanted else len(wanted)
    assert text[:end] == wanted[:end]


@given(corrected(), seeds, st.sampled_from([0.0, 1.0, 4.0]), st.sampled_from([0.0, 0.7]))
def test_what_holds_for_every_corrected_run(
    request_: GenerationRequest, seed: int, noise: float, temperature: float
) -> None:
    request_ = request_.model_copy(update={"temperature": temperature})
    language, sampler = Language(seed, noise), new_sampler(request_, seed)
    before, settled, came = [MASK] * request_.length, 0, [0] * request_.length
    while not sampler.done:
        checked = sampler.checked()
        step = language.step(sampler)
        # Each forward settles a position or commits one, so a run ends; soon, if it goes from left to right.
        length = request_.length
        soon = request_.confidence is Confidence.LEFTMOST and request_.schedule is Schedule.EVEN
        assert language.forwards <= (2 * length + 1 if soon else length * (length + 3) // 2 + 1)
        assert len(step.edits) <= 1
        assert not (step.edits and step.commits)
        changed = {c.position: c.token_id for c in (*step.edits, *step.commits)} | dict(step.forced)
        changed |= dict.fromkeys(step.remasked, MASK)
        if not step.edits:
            assert not step.remasked
        assert sampler.canvas[: min(settled, len(before))] == before[: min(settled, len(before))]
        expected = [changed.get(at, token) for at, token in enumerate(before)]
        assert sampler.canvas == expected
        assert step.masks_left == sampler.masks_left
        for edit in step.edits:
            assert edit.position in checked
            assert before[edit.position] != edit.token_id or temperature > 0
            assert edit.token_id != MASK
            # What came with it or after it is masked, unless the text just ended; what was there before it stays.
            for at in range(edit.position + 1, request_.length):
                if before[at] != MASK and not sampler.done:
                    assert (sampler.canvas[at] == MASK) == (came[at] >= came[edit.position])
            came[edit.position] = language.forwards
            settled = edit.position + 1
        if checked and not step.edits:
            settled = checked[-1] + 1
        for commit in step.commits:
            came[commit.position] = language.forwards
        before = list(sampler.canvas)
    assert MASK not in sampler.canvas
    with pytest.raises(SamplerError, match="finished"):
        sampler.step(torch.zeros(0, VOCABULARY))


@given(corrected(acceptance=0.0, temperature=0.0, end_at_stop=False), seeds)
def test_at_acceptance_zero_nothing_is_taken_back(request_: GenerationRequest, seed: int) -> None:
    """The commits are those of the same run without a correction; one more forward looks at the last of them."""
    language, sampler = Language(seed, 1.0), new_sampler(request_, seed)
    plain, alone = Language(seed, 1.0), new_sampler(request_.model_copy(update={"correction": Correction.NONE}), seed)
    while not alone.done:
        plain.step(alone)
    while not sampler.done:
        language.step(sampler)
    assert sampler.canvas == alone.canvas
    assert [s.commits for s in language.made if s.commits] == [s.commits for s in plain.made]
    assert not any(step.edits for step in language.made)
    assert language.forwards == plain.forwards + 1


def test_perfect_drafts_cost_a_forward_a_group_and_one_to_look_at_the_last() -> None:
    request_ = GenerationRequest.model_validate(
        {
            "prompt": "x",
            "length": 12,
            "steps": 3,
            "block": 0,
            "correction": "causal",
            "acceptance": 1,
            "end_at_stop": False,
        }
        | {"confidence": "leftmost", "stop_rule": "off"}
    )
    language, sampler = Language(5, 0.0), new_sampler(request_)
    while not sampler.done:
        language.step(sampler)
    assert language.forwards == 4
    assert [len(step.commits) for step in language.made] == [4, 4, 4, 0]


@given(seeds, st.integers(1, 6), st.floats(0, 1))
def test_first_rejected_by_its_formula(seed: int, count: int, acceptance: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(count, VOCABULARY, generator=generator, dtype=torch.float64)
    tokens = torch.randint(VOCABULARY, (count,), generator=generator)
    wrong = [i for i, t in enumerate(tokens.tolist()) if rows[i, t] < acceptance * max(rows[i].tolist())]
    assert first_rejected(rows, tokens, acceptance) == (wrong[0] if wrong else None)


@pytest.mark.parametrize("bad", ["rows", "nan"])
def test_bad_causal_logits_change_nothing(bad: str) -> None:
    request_ = GenerationRequest.model_validate(
        {"prompt": "x", "length": 6, "steps": 2, "block": 0, "correction": "causal", "confidence": "leftmost"}
    )
    language, sampler = Language(3, 0.0), new_sampler(request_)
    language.step(sampler)
    canvas, checked = list(sampler.canvas), sampler.checked()
    assert checked == [0, 1, 2]
    causal = torch.zeros(2 if bad == "rows" else 3, VOCABULARY)
    if bad == "nan":
        causal[1, 2] = math.nan
    with pytest.raises(SamplerError, match="3 positions and was given 2" if bad == "rows" else "NaN"):
        sampler.step(torch.zeros(3, VOCABULARY), causal)
    assert sampler.canvas == canvas
    assert sampler.checked() == checked
