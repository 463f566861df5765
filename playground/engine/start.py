"""A request's start as token ids, and what its constraints refuse. Knows tokens, not schedules or models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from playground.denoisers.base import DenoiserSpec, Tokens
from playground.engine.allowed import Rule
from playground.request import Correction, GenerationRequest, RequestError
from playground.sampling.guard import Guard
from playground.start import Allow
from playground.trace import Change, Kind

if TYPE_CHECKING:
    from playground.start import Part


@dataclass(frozen=True, slots=True)
class StartCanvas:
    """Token or mask id at each position, which positions never change, and what may stand in blanks that say so.

    `rules` holds the rule of each position of such a blank.
    """

    ids: tuple[int, ...]
    pinned: frozenset[int]
    rules: Mapping[int, Rule] = field(default_factory=dict)


def start_of(request: GenerationRequest, spec: DenoiserSpec, tokens: Tokens) -> StartCanvas:
    """What the canvas of this request holds at first.

    Raises:
        RequestError: the start is empty, or names tokens that the model does not have.
    """
    if not request.start:
        return StartCanvas((spec.mask_id,) * request.length, frozenset())
    ids: list[int] = []
    pinned: set[int] = set()
    rules: dict[int, Rule] = {}
    for part in request.start:
        some = _ids_of(part, spec, tokens)
        if part.pinned and part.blank is None:
            pinned.update(range(len(ids), len(ids) + len(some)))
        if part.blank and part.allow is not Allow.ANY:
            rules |= {len(ids) + place: Rule(part, len(ids), place) for place in range(part.blank)}
        ids += some
    if not ids:
        raise RequestError("There is nothing on the canvas; leave a blank of at least one token, or some text.")
    return StartCanvas(tuple(ids), frozenset(pinned), rules)


def _ids_of(part: Part, spec: DenoiserSpec, tokens: Tokens) -> list[int]:
    if part.blank is not None:
        return [spec.mask_id] * part.blank
    if part.text is not None:
        return tokens.encode(part.text)
    assert part.tokens is not None
    if any(token >= spec.vocabulary or token == spec.mask_id for token in part.tokens):
        raise RequestError(
            f"The start holds a token that {spec.name} does not have; send ids below {spec.vocabulary:,}."
        )
    return list(part.tokens)


def check_fit(request: GenerationRequest, spec: DenoiserSpec, prompt: int, length: int, limit: int) -> None:
    """Refuse what this model, or this deployment, cannot run.

    Args:
        request: what is asked.
        spec: of the model.
        prompt: tokens of the prompt in its template.
        length: positions of the canvas.
        limit: most that this deployment allows of them.

    Raises:
        RequestError: one sentence that says what to do.
    """
    if length > limit:
        raise RequestError(
            f"Text and blanks come to {length:,} tokens, over this app's limit of {limit:,}; shorten one of them."
        )
    if prompt + length > spec.context_limit:
        raise RequestError(
            f"The prompt ({prompt:,} tokens) and a canvas of {length:,} exceed the {spec.context_limit:,} tokens that "
            f"{spec.name} can read; shorten one of them."
        )
    if (request.correction is not Correction.NONE or request.scored) and not spec.causal_check:
        raise RequestError(f"{spec.name} cannot check its text from left to right; set the correction to none.")


def given(start: StartCanvas, mask_id: int, tokens: Tokens) -> tuple[Change, ...]:
    """What stands on the canvas before the first frame, for the header of its trace."""
    changes = []
    for at, token_id in enumerate(start.ids):
        if token_id != mask_id:
            token = tokens.token(token_id)
            changes.append(Change(at, Kind.GIVEN, token_id, token.text, None, token.raw))
    return tuple(changes)


# --- constraints ----------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def newline_ids(tokens: Tokens, vocabulary: int) -> frozenset[int]:
    """Tokens that hold a line's end."""
    texts = ((at, tokens.token(at)) for at in range(vocabulary))
    return frozenset(
        at for at, token in texts if "\n" in token.text or (token.raw is not None and "0a" in _pairs(token.raw))
    )


def _pairs(raw: str) -> list[str]:
    return [raw[at : at + 2] for at in range(0, len(raw), 2)]


class TextGuard(Guard):
    """Refuses banned words, line ends, and what a blank does not allow.

    A word is looked for in the text that the token would be part of: the committed tokens around it, as far as the
    longest word reaches, letters in either case. So however a word is cut into tokens, it never comes to stand there.
    """

    def __init__(self, request: GenerationRequest, start: StartCanvas, spec: DenoiserSpec, tokens: Tokens) -> None:
        self._words = tuple(word.casefold() for word in request.banned)
        self._reach = max((len(word.encode()) for word in request.banned), default=0)
        self._mask, self._specials, self._tokens = spec.mask_id, frozenset((spec.mask_id, *spec.stop_ids)), tokens
        self._tail = max(start.pinned, default=-1) + 1
        self._rules, self._vocabulary = start.rules, spec.vocabulary
        self._special = torch.tensor(sorted(self._specials))
        self._barred: Tensor | None = None
        if request.one_line:
            self._barred = torch.zeros(spec.vocabulary, dtype=torch.bool)
            self._barred[list(newline_ids(tokens, spec.vocabulary))] = True

    def barred(self, position: int) -> Tensor | None:
        """What the position's blank does not allow, and line ends before kept text; behind it they end the text."""
        lines = self._barred if position < self._tail else None
        if position not in self._rules:
            return lines
        barred = self._rules[position].barred(self._tokens, self._vocabulary).index_fill(0, self._special, True)
        return barred if lines is None else barred | lines

    def refuses(self, canvas: Sequence[int], position: int, token_id: int) -> bool:
        """Whether a banned word would stand there, or a number that can no longer come to be within its bounds."""
        if position in self._rules and self._rules[position].refuses(canvas, token_id, self._tokens, self._specials):
            return True
        if not self._words or token_id in self._specials:
            return False
        left = self._around(canvas, range(position - 1, -1, -1))[::-1]
        right = self._around(canvas, range(position + 1, len(canvas)))
        text = self._tokens.decode([*left, token_id, *right]).casefold()
        # Also in what stood there before this token: kept text may hold the word, and that is not the token's doing.
        before = sum(self._tokens.decode(part).casefold().count(word) for part in (left, right) for word in self._words)
        return sum(text.count(word) for word in self._words) > before

    def _around(self, canvas: Sequence[int], places: range) -> list[int]:
        """Committed tokens next to a position, nearest first, until they hold more bytes than the longest word."""
        found: list[int] = []
        held = 0
        for at in places:
            if canvas[at] in self._specials or held > self._reach:
                break
            found.append(canvas[at])
            held += len(self._tokens.decode([canvas[at]]).encode())
        return found


def guard_of(request: GenerationRequest, start: StartCanvas, spec: DenoiserSpec, tokens: Tokens) -> Guard | None:
    """The guard this request asks for; None where it asks for none."""
    asked = request.banned or request.one_line or start.rules
    return TextGuard(request, start, spec, tokens) if asked else None
