"""Rescoring climbs: position by position, until no single token could be better."""

from __future__ import annotations

import itertools
import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.sampling.rescoring import MAX_SWEEPS, Rescorer

VOCABULARY = 6


def table(seed: int, length: int) -> torch.Tensor:
    """The log probability of every text of a length, at random."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((VOCABULARY,) * length, generator=generator, dtype=torch.float64).mul(3)


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(2, 8), st.data())
@settings(deadline=None)
def test_it_ends_where_no_single_token_could_be_better(
    seed: int, length: int, candidates: int, data: st.DataObject
) -> None:
    scores = table(seed, length)
    canvas = data.draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=length, max_size=length))
    places = sorted(data.draw(st.sets(st.integers(0, length - 1))))
    before, kept = list(canvas), float(scores[tuple(canvas)])
    rescorer = Rescorer(canvas, places, candidates, lambda *_: False)
    asked = 0
    while not rescorer.done:
        at = rescorer.position
        tokens = rescorer.propose(torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(asked)))
        assert tokens[0] == canvas[at]
        assert len(set(tokens)) == len(tokens) == min(candidates, VOCABULARY)
        texts = [[*canvas[:at], token, *canvas[at + 1 :]] for token in tokens]
        values = torch.stack([scores[tuple(text)] for text in texts])
        edit = rescorer.decide(values, 5)
        now = float(scores[tuple(canvas)])
        assert now >= kept
        assert (edit is not None) == (now > kept)
        if edit is not None:
            assert (edit.position, edit.token_id) == (at, canvas[at])
            shares = {token: math.exp(float(v)) for token, v in zip(tokens, values, strict=True)}
            assert math.isclose(edit.confidence, shares[edit.token_id] / sum(shares.values()))
            assert [p for _, p in edit.alternatives] == sorted((p for _, p in edit.alternatives), reverse=True)
        kept = now
        asked += 1
    assert asked <= MAX_SWEEPS * len(places)
    assert all(canvas[at] == before[at] for at in range(length) if at not in places)
    if candidates >= VOCABULARY and asked < MAX_SWEEPS * len(places):
        for at, token in itertools.product(places, range(VOCABULARY)):
            assert float(scores[(*canvas[:at], token, *canvas[at + 1 :])]) <= kept


def test_what_is_refused_or_impossible_is_not_tried() -> None:
    rescorer = Rescorer([0, 1], [1], 6, lambda _canvas, _at, token: token == 4)
    assert rescorer.propose(torch.tensor([5.0, 0.0, 3.0, -math.inf, 9.0, 4.0])) == [1, 0, 5, 2]
