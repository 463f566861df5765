"""What every denoiser is to the rest of the house: facts, tokens, and two calls.

A denoiser predicts tokens for masked positions, given the prompt and a partly filled canvas. It must not
know how many positions will be committed, which, or when: that is `playground.sampling`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor


class DenoiserError(RuntimeError):
    """A model that cannot be loaded or run; its text is one sentence that says what to do."""


def one_line(error: Exception) -> str:
    """What a library said, as part of a sentence: on one line, not too long, without its full stop."""
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


@dataclass(frozen=True, slots=True)
class DenoiserSpec:
    """Facts about a model that samplers, pages and logs need.

    `mask_id` marks a position not yet committed and is never proposed. `stop_ids` end a text. `logit_shift`
    says that position i is read from row i-1. `attention` names who sees whom, in words. `context_limit`
    bounds prompt + canvas, in tokens. `causal_check` says that the forward can also tell how probable each committed
    token is, read from left to right.
    """

    model_id: str
    name: str
    mask_id: int
    stop_ids: tuple[int, ...]
    vocabulary: int
    context_limit: int
    attention: str
    licence: str
    logit_shift: bool = False
    template: str = ""
    causal_check: bool = False


@dataclass(frozen=True, slots=True)
class TokenText:
    """A token as text; `raw` is its bytes in hex when they are not valid UTF-8 by themselves."""

    text: str
    raw: str | None = None


class Tokens(Protocol):
    """Text to ids and back."""

    def __hash__(self) -> int:
        """One vocabulary is one key; what is worked out from it is kept."""
        ...

    def encode_prompt(self, prompt: str) -> list[int]:
        """The prompt in the model's template. Special tokens spelled out in `prompt` stay ordinary text."""
        ...

    def encode(self, text: str) -> list[int]:
        """Plain text, no template; `decode` gives it back byte for byte."""
        ...

    def token(self, token_id: int) -> TokenText:
        """One token as text."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of a run of tokens, special tokens left out, bytes joined before decoding."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One canvas's part of a forward.

    `context` is what `prepare` gave for this run. `canvas` holds a token id at each position, the mask id where
    nothing is committed. `wanted` are the masked positions whose predictions are needed, ascending.
    `checked` are
    committed positions, all before the first mask, whose distribution given only the text before them is needed; only
    for denoisers whose spec says `causal_check`.
    """

    context: Any
    canvas: Sequence[int]
    wanted: Sequence[int]
    checked: Sequence[int] = ()


class Denoiser(Protocol):
    """A loaded model. Calls come from one thread at a time."""

    @property
    def spec(self) -> DenoiserSpec:
        """Facts about the model."""
        ...

    @property
    def tokens(self) -> Tokens:
        """Its vocabulary and template."""
        ...

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        ...

    @property
    def dtype(self) -> torch.dtype:
        """What its weights are kept as."""
        ...

    def prepare(self, prompt_ids: Sequence[int], length: int) -> Any:
        """Do the prompt's work once, for a canvas of `length` positions; gives the run's context."""
        ...

    def logits(self, jobs: Sequence[Job]) -> Iterator[Tensor]:
        """One forward for all jobs.

        Yields:
            For each job in turn, `[len(wanted) + len(checked), vocabulary]` float32 logits on `device`, the wanted
            rows first; any logit shift is already undone. Ragged by design: canvases of different lengths share a
            forward unpadded.
        """
        ...


@runtime_checkable
class Rescoring(Protocol):
    """What a denoiser with `causal_check` can do besides."""

    def rescore(self, context: Any, canvas: Sequence[int], position: int, tokens: Sequence[int]) -> Tensor:
        """How probable the text is, read from left to right, with each of some tokens at a position.

        Args:
            context: of the run, whose last forward saw this canvas up to the position.
            canvas: token ids without masks; what is at `position` does not matter.
            position: where the tokens are tried.
            tokens: token ids.

        Returns:
            Log probability, in nats, of the canvas from the position on, `[len(tokens)]` float32.
        """
        ...
