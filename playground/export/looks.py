"""What each position of a canvas looks like at a step, as pieces of text and a few marks; for pictures and plain text.

The same rules as the viewer's (static/views.js, static/bytes.js), which a test holds beside these. Must not know how
anything is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from playground.trace import Candidate, Cell, Change, Frame, Guess, Kind, Trace, apply

UNSURE_BELOW = 0.5
"""A token committed with less than this probability is shown as unsure."""
LONGEST_GUESS = 28
_UNSHAPED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffc]")
_PARTS = re.compile(f"(\n|\t|{_UNSHAPED.pattern})")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one position: `kind` is text, guess, space, newline, tab or chip (what has no shape of its own)."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """How a position looks: `kind` is mask, noise, text, end or padding; `marks` any of given, fresh, revised, unsure,
    back and pinned.

    `sure` is the probability of a mask's guess.
    """

    kind: str
    pieces: tuple[Piece, ...]
    marks: frozenset[str] = frozenset()
    sure: float = 0.0


class Stills:
    """The canvas of a trace, step by step and only forwards: each frame is carried out once.

    Args:
        trace: the run; an IndexError comes of asking beyond its end.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._stops = frozenset(trace.header.stop_ids)
        self._stop_texts = _stop_texts(trace)
        self._cells = trace.canvas_at(0)
        self._guesses: list[Guess | None] = [None] * len(self._cells)
        self._at = 0

    def at(self, k: int) -> list[Look]:
        """Every position's look after k frames; k may not be smaller than before."""
        if not self._at <= k <= len(self._trace.frames):
            raise IndexError(f"step {k} is outside {self._at} to {len(self._trace.frames)}")
        for frame in self._trace.frames[self._at : k]:
            _carry_out(frame, self._cells, self._guesses)
        self._at = k
        step = self._trace.frames[k - 1].step if k else -1
        pinned = set(self._trace.header.pinned)
        return [
            replace(look, marks=look.marks | {"pinned"}) if at in pinned else look
            for at, look in enumerate(self._looks(step))
        ]

    def _looks(self, step: int) -> Iterator[Look]:
        joined = _joined(self._cells, self._stops)
        ended = False
        for at, cell in enumerate(self._cells):
            if cell.token_id is None:
                back = frozenset({"back"}) if cell.kind is Kind.REMASK and cell.step == step else frozenset[str]()
                yield _mask(self._guesses[at], back, self._stop_texts)
                continue
            stops = cell.token_id in self._stops
            yield _token(cell, joined.get(at), step, stops=stops, ended=ended)
            ended = ended or stops


def canvas_text(cells: Sequence[Cell], stops: frozenset[int]) -> str:
    """What stands on a canvas before its first stop token, masks between words as an ellipsis."""
    joined = _joined(cells, stops)
    parts: list[str] = []
    for at, cell in enumerate(cells):
        if cell.token_id in stops:
            break
        if cell.token_id is None:
            parts += [] if parts[-1:] == [" … "] else [" … "]
        elif at in joined:
            parts += [piece.text for piece in joined[at] if piece.kind != "chip"]
        else:
            parts.append(cell.text)
    return "".join(parts).strip().removesuffix("…").removeprefix("…").strip()


# --- one position -------------------------------------------------------------------------------


def _mask(guess: Guess | None, marks: frozenset[str], stop_texts: frozenset[str]) -> Look:
    if guess is None:
        return Look("mask", (Piece("space", " "), Piece("guess", "\u2003")), marks)
    before = (Piece("space", " "),) if guess.text.startswith(" ") else ()
    sure = 0.0 if guess.probability < 0.1 else guess.probability
    return Look("mask", (*before, Piece("guess", _ghost(guess.text, stop_texts))), marks, sure)


def _ghost(text: str, stop_texts: frozenset[str]) -> str:
    """A guess as it is written inside its mask: on one line, and with something to see."""
    if text in stop_texts:
        return "end"
    visible = text.replace("\n", "⏎").replace("\t", "→").replace("\ufffd", "").strip()
    if len(visible) > LONGEST_GUESS:
        return f"{visible[: LONGEST_GUESS - 1]}…"
    return visible or ("␣" if text and not text.strip() else "·")


def _token(cell: Cell, joined: list[Piece] | None, step: int, *, stops: bool, ended: bool) -> Look:
    marks = _marks(cell, step)
    if ended:
        marks &= {"fresh"}
        if stops or cell.kind is Kind.FORCE or not cell.text:
            return Look("padding", (Piece("text", "·"),), marks)
        return Look("padding", _content(cell, joined), marks)
    if stops:
        return Look("end", (Piece("text", "end"),), marks)
    if cell.kind is Kind.RENOISE:
        return Look("noise", _content(cell, joined))
    return Look("text", _content(cell, joined), marks)


def _marks(cell: Cell, step: int) -> frozenset[str]:
    if cell.kind is Kind.GIVEN:
        return frozenset({"given"})
    marks = set()
    if cell.step == step:
        marks.add("fresh")
        if cell.kind is Kind.EDIT:
            marks.add("revised")
    if cell.confidence is not None and cell.confidence < UNSURE_BELOW:
        marks.add("unsure")
    return frozenset(marks)


def _content(cell: Cell, joined: list[Piece] | None) -> tuple[Piece, ...]:
    if joined is not None:
        return tuple(joined)
    return tuple(split_text(cell.text)) if cell.text else (Piece("chip", "∅"),)


def split_text(text: str) -> list[Piece]:
    """Cut a text into what is shown as it is and what needs a sign."""
    spaces = re.match("^ +(?=[^ \n\t])", text)
    start = [Piece("space", spaces[0])] if spaces else []
    return start + [_part(part) for part in _PARTS.split(text[len(spaces[0]) if spaces else 0 :]) if part]


def _part(part: str) -> Piece:
    if part == "\n":
        return Piece("newline", part)
    if part == "\t":
        return Piece("tab", part)
    return Piece("chip", f"U+{ord(part):04X}") if _UNSHAPED.fullmatch(part) else Piece("text", part)


# --- tokens that are parts of characters ----------------------------------------------------------


def _joined(cells: Sequence[Cell], stops: frozenset[int]) -> dict[int, list[Piece]]:
    """The pieces of all positions that hold bytes, neighbours decoded together."""
    pieces: dict[int, list[Piece]] = {}
    run: list[tuple[int, int]] = []
    for at, cell in enumerate((*cells, Cell())):
        if cell.raw is not None and cell.token_id is not None and cell.token_id not in stops:
            pieces[at] = []
            run += [(byte, at) for byte in bytes.fromhex(cell.raw)]
        elif run:
            _decode(run, pieces)
            run = []
    return pieces


def _decode(run: Sequence[tuple[int, int]], pieces: dict[int, list[Piece]]) -> None:
    """A character belongs to the position of its first byte; bytes that make none are shown as bytes."""
    data = bytes(byte for byte, _ in run)
    at = 0
    while at < len(data):
        character = next(filter(None, (_character(data[at : at + n]) for n in range(1, 5))), None)
        into = pieces[run[at][1]]
        if character is None:
            into.append(Piece("chip", f"{data[at]:02X}"))
            at += 1
        else:
            into += split_text(character) if character != " " else [Piece("space", " ")]
            at += len(character.encode())


def _character(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


# --- steps --------------------------------------------------------------------------------------


def _carry_out(frame: Frame, cells: list[Cell], guesses: list[Guess | None]) -> None:
    """A guess holds until its position changes or a newer one comes."""
    for change in frame.changes:
        if change.kind is Kind.DELETE:
            del guesses[change.position]
        elif change.kind is Kind.INSERT:
            guesses.insert(change.position, None)
        else:
            guesses[change.position] = None
    apply(cells, frame)
    for guess in frame.guesses:
        if 0 <= guess.position < len(cells) and cells[guess.position].token_id is None:
            guesses[guess.position] = guess


def _stop_texts(trace: Trace) -> frozenset[str]:
    """What the model writes to end its text: as the header says, and as the run has shown."""
    stops = set(trace.header.stop_ids)
    changes = [change for frame in trace.frames for change in frame.changes]
    tokens: list[Change | Candidate] = [*changes, *(other for change in changes for other in change.alternatives)]
    return frozenset(trace.header.stop_texts) | {token.text for token in tokens if token.token_id in stops}
