"""The formulas of sampling, stated plainly: Python lists and loops, no tensor. What the code is tested against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from playground.request import Confidence, GenerationRequest, Schedule, StopRule

Row = list[float]


def softmax(row: Sequence[float]) -> Row:
    """exp(l) / sum exp(l), with minus infinity giving 0."""
    top = max(row)
    weights = [0.0 if value == -math.inf else math.exp(value - top) for value in row]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def entropy(probabilities: Sequence[float]) -> float:
    """-sum p ln p, in nats."""
    return -math.fsum(p * math.log(p) for p in probabilities if p > 0)


def argmax(row: Sequence[float]) -> int:
    """Index of the largest value, the first of several."""
    return max(range(len(row)), key=lambda i: (row[i], -i))


def confidence_of(name: Confidence, probabilities: Row, proposal: int, position: int) -> float:
    """The score of one masked position (the random one has no formula)."""
    first, second, *_ = sorted(probabilities, reverse=True)
    return {
        Confidence.PROBABILITY: probabilities[proposal],
        Confidence.MARGIN: first - second,
        Confidence.NEG_ENTROPY: -entropy(probabilities),
        Confidence.LEFTMOST: -float(position),
    }[name]


def best(scores: Sequence[float], count: int) -> set[int]:
    """The `count` highest scores, the leftmost where they tie."""
    return set(sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count])


def over_threshold(values: Sequence[float], bar: float, scores: Sequence[float]) -> set[int]:
    """All values of at least `bar`; if there is none, the best score."""
    return {i for i, value in enumerate(values) if value >= bar} or best(scores, 1)


def within_bound(entropies: Sequence[float], bound: float, scores: Sequence[float]) -> set[int]:
    """In order of falling score, as many as fit: sum of entropies less the largest <= bound; one always."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    fitting = 1
    for count in range(1, len(order) + 1):
        taken = [entropies[i] for i in order[:count]]
        if math.fsum(taken) - max(taken) > bound:
            break
        fitting = count
    return set(order[:fitting])


def even_counts(masks: int, steps: int) -> list[int]:
    """Commits a step: one to each step in turn, round after round, until there are no masks."""
    counts = [0] * steps
    for i in range(masks):
        counts[i % steps] += 1
    return [count for count in counts if count]


def cosine_counts(masks: int, steps: int) -> list[int]:
    """After step s, floor(masks * cos(pi/2 * s/steps)) are left; but every step commits at least one."""
    counts, left = [], masks
    for s in range(1, steps + 1):
        if left == 0:
            break
        planned = 0 if s == steps else math.floor(round(masks * math.cos(math.pi / 2 * s / steps), 9))
        committed = max(1, left - planned)
        counts.append(committed)
        left -= committed
    return counts


@dataclass
class PlainRun:
    """A whole run at temperature 0, stated plainly; `step` is given the raw logits of the masked positions."""

    request: GenerationRequest
    mask_id: int
    stop_ids: tuple[int, ...]
    blocks: list[tuple[int, int, int]]

    def __post_init__(self) -> None:
        self.canvas = [self.mask_id] * self.request.length
        self.block = self.in_block = 0
        self.done = False

    def wanted(self) -> list[int]:
        """Masked positions of the block at work."""
        start, end, _ = self.blocks[self.block]
        return [at for at in range(start, end) if self.canvas[at] == self.mask_id]

    def step(self, logits: list[Row]) -> tuple[dict[int, tuple[int, float]], dict[int, int]]:
        """What is committed, {position: (token, probability)}, and forced, {position: token}."""
        positions = self.wanted()
        start, end, steps = self.blocks[self.block]
        rows = [self._banned(row, at) for row, at in zip(logits, positions, strict=True)]
        shares = [softmax(row) for row in rows]
        tokens = [argmax(row) for row in rows]
        chosen = self._chosen(shares, tokens, positions, end - start, steps)
        commits = {positions[i]: (tokens[i], shares[i][tokens[i]]) for i in chosen}
        for at, (token, _) in commits.items():
            self.canvas[at] = token
        self.in_block += 1
        forced = self._force() if self.request.end_at_stop else {}
        if not self.done and not self.wanted():
            self.block, self.in_block = self.block + 1, 0
            self.done = self.block == len(self.blocks)
        return commits, forced

    def _banned(self, row: Row, at: int) -> Row:
        row = list(row)
        row[self.mask_id] = -math.inf
        for stop in self.stop_ids:
            match self.request.stop_rule:
                case StopRule.SUPPRESSED:
                    row[stop] = -math.inf
                case StopRule.PENALTY:
                    row[stop] -= self.request.stop_penalty
                case StopRule.NEVER_FIRST if at == 0:
                    row[stop] = -math.inf
        return row

    def _chosen(self, shares: list[Row], tokens: list[int], positions: list[int], size: int, steps: int) -> set[int]:
        name = self.request.confidence
        scores = [confidence_of(name, p, t, at) for p, t, at in zip(shares, tokens, positions, strict=True)]
        sure = [p[t] for p, t in zip(shares, tokens, strict=True)]
        match self.request.schedule:
            case Schedule.EVEN:
                return best(scores, even_counts(size, steps)[self.in_block])
            case Schedule.COSINE:
                return best(scores, cosine_counts(size, steps)[self.in_block])
            case Schedule.THRESHOLD:
                values = scores if name in (Confidence.PROBABILITY, Confidence.MARGIN) else sure
                return over_threshold(values, self.request.threshold, scores)
            case Schedule.RAMP:
                return over_threshold(sure, 1 - (self.in_block + 1) / steps, scores)
        return within_bound([entropy(p) for p in shares], self.request.entropy_bound, scores)

    def _force(self) -> dict[int, int]:
        """Once the text up to the first stop id is complete, everything behind it becomes that stop id."""
        first = next((at for at, token in enumerate(self.canvas) if token in self.stop_ids), None)
        if first is None or self.mask_id in self.canvas[:first]:
            return {}
        self.done = True
        forced = {at: self.canvas[first] for at, token in enumerate(self.canvas) if token == self.mask_id}
        for at, token in forced.items():
            self.canvas[at] = token
        return forced


def requests(**fixed: Any) -> st.SearchStrategy[GenerationRequest]:
    """Any request with a short canvas; `fixed` are knobs that are given."""
    knobs: dict[str, st.SearchStrategy[Any]] = {
        "length": st.integers(1, 14),
        "steps": st.integers(1, 20),
        "block": st.integers(0, 16),
        "schedule": st.sampled_from(Schedule),
        "confidence": st.sampled_from(Confidence),
        "threshold": st.floats(0, 1),
        "entropy_bound": st.floats(0, 3),
        "temperature": st.sampled_from([0.0, 0.0, 0.7, 2.0]),
        "top_p": st.sampled_from([1.0, 0.9, 0.2]),
        "top_k": st.sampled_from([0, 1, 3]),
        "stop_rule": st.sampled_from(StopRule),
        "stop_penalty": st.floats(0, 20),
        "end_at_stop": st.booleans(),
    }
    given = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in fixed.items()}
    return st.builds(GenerationRequest, prompt=st.just("x"), **{**knobs, **given})
