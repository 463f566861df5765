"""Where a model stands, for everyone who waits for it. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ModelState(StrEnum):
    """Where a model stands."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model's state, how long loading took (or has taken so far), and why it failed."""

    state: ModelState
    seconds: float
    message: str = ""
