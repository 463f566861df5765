"""A denoiser whose forward costs next to nothing, to see what everything around the model costs.

It is served through the real engine and the real app. Its logits depend on position and on how much is committed, so
that guesses change from step to step as a model's do; what it writes means nothing. Must not know pages or clocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from playground.denoisers.base import DenoiserSpec, Job, TokenText

MASK_ID, STOP_ID = 0, 1
_WORDS = """the a of and to in is that it was for on are with as his they at be this from have or by one had not but
what all were when we there can an your which their said if do will each about how up out them then she many some so
these would other into has more her two like him see time could no make than first been its who now people my made over
did down only way find use may water long little very after words called just where most know""".split()  # noqa: SIM905 - eighty quoted words would hide what they are
_PARTS = [" ", "\n", ".", ",", "é", "ß", " 日", "本", " 🙂", "-", *(f" {word}" for word in _WORDS), *_WORDS]
_PERIOD = 509
"""Prime, so that neither positions nor steps fall into step with the table."""


class SyntheticTokens:
    """A word a token; whatever is not among them is read as a space."""

    def encode_prompt(self, prompt: str) -> list[int]:
        """As plain text; there is no template."""
        return self.encode(prompt)

    def encode(self, text: str) -> list[int]:
        """The whole words of a text, ids of the others being those of a space."""
        return [_IDS.get(f" {word}", _FIRST) for word in text.split()] or [_FIRST]

    def token(self, token_id: int) -> TokenText:
        """One token as text."""
        return TokenText("" if token_id < _FIRST else _PARTS[token_id - _FIRST])

    def decode(self, token_ids: Sequence[int]) -> str:
        """All of them in a row."""
        return "".join(self.token(token_id).text for token_id in token_ids)


_FIRST = 2
_IDS = {part: _FIRST + at for at, part in enumerate(_PARTS)}


class SyntheticDenoiser:
    """See the module. Takes what a loader is called with, and uses nothing of it."""

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, *_: object) -> None:
        self.tokens = SyntheticTokens()
        self.spec = DenoiserSpec(
            model_id="pocket",
            name="Synthetic",
            mask_id=MASK_ID,
            stop_ids=(STOP_ID,),
            vocabulary=_FIRST + len(_PARTS),
            context_limit=4096,
            attention="none",
            licence="none",
        )
        dice = torch.Generator().manual_seed(0)
        self._table = 3 * torch.randn(_PERIOD, self.spec.vocabulary, generator=dice)
        self._table[:, [MASK_ID, STOP_ID]] = -100.0

    def prepare(self, prompt_ids: Sequence[int], length: int) -> int:
        """Nothing to prepare; the context is the length."""
        del prompt_ids
        return length

    def logits(self, jobs: Sequence[Job]) -> Iterator[Tensor]:
        """Rows of a table, chosen by position and by how many positions are masked."""
        for job in jobs:
            places = torch.tensor([*job.wanted, *job.checked])
            yield self._table[(places * 31 + len(job.wanted) * 7) % _PERIOD]
