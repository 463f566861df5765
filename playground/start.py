"""What stands on a canvas before the first forward: text that is kept, tokens that are kept, and blanks.

Infilling, pinned words and branches of earlier runs are all a list of parts. Must not know tokenizers, markup or pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MAX_PARTS = 4096
MAX_BLANK = 1024
"""Longest blank, in tokens; the canvas as a whole is bounded by the request."""


def _whole(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


class Allow(StrEnum):
    """What may stand in a blank: anything; a JSON string's inside; a whole number's digits; those behind a point."""

    ANY = "any"
    STRING = "string"
    WHOLE = "whole"
    FRACTION = "fraction"


class Part(BaseModel):
    """One stretch of the canvas: exactly one of `text`, `tokens` and `blank`.

    `text` is any text, tokenized by itself and shown byte for byte; `tokens` are ids of the model's vocabulary;
    `blank` is a number of masked positions, 0 for none. `pinned` text and tokens are never changed; others may be
    taken back by a correction. `allow` says what may come to stand in a blank; `low` and `high` bound a whole number of
    as many digits as the blank has positions; `high` is a string's longest length in characters.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = Field(default=None, strict=True)
    tokens: tuple[Annotated[int, BeforeValidator(_whole), Field(ge=0)], ...] | None = None
    blank: Annotated[int, BeforeValidator(_whole), Field(ge=0, le=MAX_BLANK)] | None = None
    pinned: bool = True
    allow: Allow = Allow.ANY
    low: Annotated[int, BeforeValidator(_whole), Field(ge=0)] | None = None
    high: Annotated[int, BeforeValidator(_whole), Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> Part:
        if sum(value is not None for value in (self.text, self.tokens, self.blank)) != 1:
            raise ValueError("each part of the start is one of text, tokens and blank")
        if self.blank is None and self.allow is not Allow.ANY:
            raise ValueError("only a blank can allow something; take allow away or give a blank")
        if (self.low is not None and self.allow is not Allow.WHOLE) or (
            self.high is not None and self.allow not in {Allow.WHOLE, Allow.STRING}
        ):
            raise ValueError('only a blank that allows "whole" has bounds, and "string" has high; take them away')
        if self.text is not None and any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in self.text):
            raise ValueError("the text around the blanks holds a broken character or a NUL; remove it")
        return self


Start: TypeAlias = tuple[Part, ...]


def text_part(text: str) -> Part:
    """Text that stays."""
    return Part(text=text)


def blank_part(length: int) -> Part:
    """Masked positions."""
    return Part(blank=length)


def stored(start: Sequence[Part]) -> list[dict[str, Any]]:
    """As JSON, without what is not said."""
    return [part.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for part in start]


__all__ = ["MAX_BLANK", "MAX_PARTS", "Allow", "Part", "Start", "blank_part", "stored", "text_part"]
