"""Blanks that say what may stand in them: a string's inside, the digits of a whole number, those behind a point.

Legal at every step, not only at the end: a token is barred where it cannot be part of any legal filling. (PICARD,
arXiv 2109.05093, does so from left to right.) Must not know schemas.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from playground.denoisers.base import Tokens
from playground.start import Allow, Part

Opening: TypeAlias = Literal["first", "alone", "inside"]


@dataclass(frozen=True, slots=True)
class Rule:
    """What one position of a blank allows: the blank, its first position on the canvas, the position's place in it."""

    part: Part
    first: int
    place: int

    @property
    def _counted(self) -> bool:
        """A number with bounds: one digit a position."""
        return self.part.allow is Allow.WHOLE and (self.part.low is not None or self.part.high is not None)

    def barred(self, tokens: Tokens, vocabulary: int) -> Tensor:
        """Tokens that can never stand there, `[vocabulary]` of bool."""
        opening: Opening = "inside" if self.place else "alone" if self.part.blank == 1 else "first"
        return unfit(tokens, vocabulary, self.part.allow, opening, self._counted)

    def refuses(self, canvas: Sequence[int], token_id: int, tokens: Tokens, specials: Collection[int]) -> bool:
        """Whether the number could no longer come to be within its bounds, or the string is too long."""
        if not self._counted and self.part.high is None:
            return False
        ids = list(canvas[self.first : self.first + (self.part.blank or 0)])
        ids[self.place] = token_id
        digits = [None if at in specials else tokens.token(at).text for at in ids]
        if not self._counted:  # a place that is open takes one character at least
            return sum(1 if text is None else len(text) for text in digits) > (self.part.high or 0)
        most = 10 ** len(digits) - 1
        return not reachable(digits, self.part.low or 0, most if self.part.high is None else self.part.high)


@lru_cache(maxsize=64)
def unfit(tokens: Tokens, vocabulary: int, allow: Allow, opening: Opening, digit: bool) -> Tensor:
    """Tokens that may not stand in a blank of this kind, `[vocabulary]` of bool.

    Args:
        tokens: the vocabulary.
        vocabulary: its size.
        allow: the blank's kind.
        opening: where in the blank. A whole number begins with no zero, but may be 0.
        digit: one digit a token, for numbers with bounds.
    """
    barred = torch.ones(vocabulary, dtype=torch.bool)
    for at in range(vocabulary):
        token = tokens.token(at)
        # A token that holds part of a character could end as bytes that are no text.
        fits = token.raw is None and _fits(token.text, allow, opening)
        barred[at] = not fits or (digit and len(token.text) > 1)
    return barred


def _fits(text: str, allow: Allow, opening: Opening) -> bool:
    if allow is Allow.STRING:
        return bool(text) and not any(letter in '"\\' or letter < " " for letter in text)
    if not (text.isascii() and text.isdigit()):
        return False
    zero = allow is Allow.WHOLE and opening != "inside" and text[0] == "0"
    return not zero or (opening == "alone" and text == "0")


def reachable(digits: Sequence[str | None], low: int, high: int) -> bool:
    """Whether open places (None) can be filled so that the number lies within bounds, without a leading zero."""
    count = len(digits)
    low = max(low, 0 if count == 1 else 10 ** (count - 1))
    high = min(high, 10**count - 1)
    if low > high:
        return False
    least = str(low).zfill(count)
    # The least number from `low` on that has these digits: it follows `low` up to some place, and is larger there.
    for same in range(count, -1, -1):
        if any(digit not in (None, least[at]) for at, digit in enumerate(digits[:same])):
            continue
        if same == count:
            return True
        larger = digits[same] or str(int(least[same]) + 1)
        if len(larger) == 1 and larger > least[same]:
            rest = "".join(digit or "0" for digit in digits[same + 1 :])
            return int(least[:same] + larger + rest) <= high
    return False


__all__ = ["Rule", "reachable", "unfit"]
