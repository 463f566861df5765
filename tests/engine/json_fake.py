"""A denoiser that reads, over a vocabulary made to break JSON: quotes, backslashes, half characters, digits joined.

Its logits are drawn from the canvas, so that whatever is legal is written sooner or later.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from playground.denoisers.base import DenoiserSpec, Job, TokenText

MASK, STOP = 0, 1
WORDS = ['"}', '": "', "\\n", "12", "007", "3.5", " name", "é", "日本", "null", "]", "\u2028", "-1"]
VOCABULARY = [b"<mask>", b"<stop>", *(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS)]


class BytesTokens:
    """One token a byte to encode with; longer ones to be drawn."""

    def encode_prompt(self, prompt: str) -> list[int]:
        """Its bytes."""
        return self.encode(prompt)

    def encode(self, text: str) -> list[int]:
        """Its bytes."""
        return [2 + byte for byte in text.encode()]

    def token(self, token_id: int) -> TokenText:
        """One token; half a character has no text."""
        raw = VOCABULARY[token_id]
        try:
            return TokenText(raw.decode())
        except UnicodeDecodeError:
            return TokenText("", raw.hex())

    def decode(self, token_ids: Sequence[int]) -> str:
        """Bytes joined."""
        return b"".join(VOCABULARY[at] for at in token_ids if at > STOP).decode("utf-8", "replace")


class JsonDenoiser:
    """See the module."""

    device = torch.device("cpu")
    dtype = torch.float32
    spec = DenoiserSpec(
        model_id="pocket",
        name="Fake that reads",
        mask_id=MASK,
        stop_ids=(STOP,),
        vocabulary=len(VOCABULARY),
        context_limit=8000,
        attention="none",
        licence="none",
        causal_check=True,
    )

    def __init__(self) -> None:
        self.tokens = BytesTokens()

    def prepare(self, prompt_ids: Sequence[int], length: int) -> tuple[int, ...]:
        """The prompt."""
        del length
        return tuple(prompt_ids)

    def logits(self, jobs: Sequence[Job]) -> Iterator[Tensor]:
        """A row for each position that is asked for."""
        for job in jobs:
            rows = [self._row(job, at) for at in [*job.wanted, *job.checked]]
            yield torch.stack(rows) if rows else torch.zeros(0, len(VOCABULARY))

    def _row(self, job: Job, at: int) -> Tensor:
        state = zlib.crc32(repr((job.context, list(job.canvas), at)).encode())
        row = 4 * torch.randn(len(VOCABULARY), generator=torch.Generator().manual_seed(state))
        row[STOP] += 6
        row[2 + ord('"')] += 6
        row[2 + ord("\\")] += 6
        row[-len(WORDS) :] += 6
        return row

    def rescore(self, context: object, canvas: Sequence[int], position: int, tokens: Sequence[int]) -> Tensor:
        """A log probability for each token, drawn from the text."""
        states = [zlib.crc32(repr((context, [*canvas[:position], token])).encode()) for token in tokens]
        return torch.tensor([-(state % 1000) / 100 for state in states])
