"""What may not stand at a position, whatever the model thinks: a protocol that the sampler asks. Knows no tokens'
texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor


class Guard(Protocol):
    """Asked before anything is committed."""

    def barred(self, position: int) -> Tensor | None:
        """Which tokens can never stand there, `[vocabulary]` of bool; None for all may."""
        ...

    def refuses(self, canvas: Sequence[int], position: int, token_id: int) -> bool:
        """Whether this token may not stand there, given what else stands on the canvas (masks among it)."""
        ...


class NoGuard:
    """Everything may stand everywhere."""

    def barred(self, position: int) -> Tensor | None:
        """Nothing."""
        del position
        return None

    def refuses(self, canvas: Sequence[int], position: int, token_id: int) -> bool:
        """Never."""
        del canvas, position, token_id
        return False
