"""What a step did, as plain numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Commit:
    """A position that got its token. `alternatives` are (token id, raw probability), best first."""

    position: int
    token_id: int
    confidence: float
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step changed: tokens committed, tokens forced (padding after the end), best guesses left; with a
    correction also tokens put in place of others (`edits`) and positions masked again (`remasked`). `forwards` it
    took."""

    block: int
    commits: tuple[Commit, ...]
    forced: tuple[tuple[int, int], ...]
    guesses: tuple[Commit, ...]
    masks_left: int
    edits: tuple[Commit, ...] = ()
    remasked: tuple[int, ...] = ()
    forwards: int = 1
    entropy_left: float | None = None
