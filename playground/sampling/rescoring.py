"""A full canvas made more probable, position by position (iterated conditional modes; Besag, 1986).

A left-to-right reader cannot propose what fits a gap, for it does not see what is behind it; but it can say how
probable a whole text is. So at each position the denoiser proposes some tokens, the reader scores the text with each
of them in its place, and the best stays. The scores, normalised over the candidates, are their probabilities given
all the rest of the text. Must not know models or tokenizers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from playground.sampling.commits import Commit

MAX_SWEEPS = 3
"""Most passes over the positions; one whose surroundings have not changed since is not tried again."""


class Rescorer:
    """The state of one canvas's rescoring.

    Args:
        canvas: token ids, no masks; changed in place.
        positions: those that may change, ascending.
        candidates: tokens tried at each.
        refuses: says of (canvas, position, token) that it may not stand there.
    """

    def __init__(
        self,
        canvas: list[int],
        positions: Sequence[int],
        candidates: int,
        refuses: Callable[[Sequence[int], int, int], bool],
    ) -> None:
        self._canvas, self._positions, self._count, self._refuses = canvas, list(positions), candidates, refuses
        self._at = self._sweep = 0
        self._changes = 0
        self._tried: list[int] = []
        self._seen: dict[int, int] = {}

    @property
    def done(self) -> bool:
        """No position is left to try."""
        return not self._positions or self._sweep >= MAX_SWEEPS

    @property
    def position(self) -> int:
        """The position at work."""
        return self._positions[self._at]

    def propose(self, logits: Tensor) -> list[int]:
        """The tokens to try, from the denoiser's logits `[vocabulary]` with the position masked; what stands there
        first."""
        here = self._canvas[self.position]
        best = logits.topk(min(4 * self._count, logits.shape[-1]))
        some = [
            token
            for token, value in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if value > -torch.inf
        ]
        others = [token for token in some if token != here and not self._refuses(self._canvas, self.position, token)]
        self._tried = [here, *others[: self._count - 1]]
        return self._tried

    def decide(self, scores: Tensor, alternatives: int) -> Commit | None:
        """Keep the best of the tokens tried, and move on; gives what changed, None where nothing did.

        Args:
            scores: log probability of the text with each token in its place, `[tokens tried]`.
            alternatives: how many candidates are told of.
        """
        shares = scores.double().softmax(-1)
        order = torch.argsort(shares, descending=True, stable=True).tolist()
        position, token = self.position, self._tried[order[0]]
        others = tuple((self._tried[i], float(shares[i])) for i in order[:alternatives])
        changed = token != self._canvas[position]
        self._canvas[position] = token
        self._changes += changed
        self._seen[position] = self._changes
        self._move_on()
        return Commit(position, token, float(shares[order[0]]), others) if changed else None

    def _move_on(self) -> None:
        """To the next position whose surroundings have changed since it was tried last."""
        for _ in self._positions:
            self._at += 1
            if self._at == len(self._positions):
                self._at, self._sweep = 0, self._sweep + 1
            if self._seen.get(self.position) != self._changes:
                return
        self._sweep = MAX_SWEEPS
