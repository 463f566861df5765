"""Writes sample traces for the viewer's harness: `python tests/static/make_samples.py DIRECTORY`.

The runs are acted, not generated: a known text is uncovered in a plausible order, with plausible guesses, so
that every look of the canvas can be seen without a model. The same seed writes the same files.
"""

from __future__ import annotations

import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from playground.trace import (
    Candidate,
    Change,
    Frame,
    Guess,
    Header,
    Kind,
    Outcome,
    Result,
    Timings,
    Trace,
)

STOP = 2
STOP_TEXT = "<|im_end|>"
STORY = (
    "In the heart of the forest, a curious fox named Max found a small brass key. He carried it to the "
    "river, past the sleeping owl, and set it on a stone. By morning the stone had a door, and Max, who "
    "had never knocked on anything, knocked."
)
CODE = 'def greet(name):\n\tif not name:\n\t\treturn "Hello"\n\treturn f"Hello, {name}"\n\n\nprint(greet("fox"))\n'
ARABIC = "في قلب الغابة كان ثعلب فضولي يبحث عن مفتاح صغير، ولم يكن يعرف بعد أي باب يفتح."
HEBREW = "\nשועל סקרן מצא מפתח קטן ליד הנהר."
EMOJI = "A fox 🦊 met a family 👩‍👩‍👧 at the café. 狐は小さな鍵を見つけた。 Then 🎉!"
HOSTILE = [
    "<script>",
    "alert(1)",
    "</script>",
    " ${alert(1)}",
    " <img src=x onerror=alert(1)>",
    " &amp;",
    " {{value}}",
    " \u202eesrever\u202c",
    " \x00\x07",
    ' "><b>bold</b>',
    " aVeryLongTokenWithoutAnySpaceThatHasToWrapSomewhere" * 4,
    " fin.",
]


@dataclass(frozen=True)
class Token:
    """One token of the text that a run uncovers."""

    token_id: int
    text: str
    raw: str | None = None


def words(text: str) -> list[Token]:
    """Cut a text like a tokenizer would: words with their leading space, punctuation, line ends."""
    parts = re.findall(r"\n+|\t+| ?[^\W_]+| ?[^\w\s]| +|_", text)
    return [Token(100 + sum(part.encode()) % 4000, part) for part in parts]


def halves(text: str) -> list[Token]:
    """Cut words in two, as tokenizers do with scripts they know little of; letters must still join up."""
    parts = re.findall(r"\n| ?\w{1,3}|[^\w\s]", text)
    return [Token(100 + sum(part.encode()) % 4000, part) for part in parts]


def byte_tokens(text: str, cuts: random.Random) -> list[Token]:
    """ASCII as words; everything else as tokens of one to three bytes, cut without regard for characters."""
    tokens: list[Token] = []
    for part in re.findall(r"[\x00-\x7f]+|[^\x00-\x7f]+", text):
        if part.isascii():
            tokens += words(part)
            continue
        data = part.encode()
        while data:
            size = cuts.choice((1, 2, 2, 3))
            piece, data = data[:size], data[size:]
            try:
                tokens.append(Token(5000 + sum(piece), piece.decode()))
            except UnicodeDecodeError:
                tokens.append(Token(5000 + sum(piece), "", piece.hex()))
    return tokens


@dataclass
class Actor:
    """Uncovers a text, `per_step` tokens a frame, block after block."""

    target: list[Token]
    seed: int = 7
    block: int = 0
    per_step: int = 1
    trace: Trace = field(init=False)
    prompt: str = "Write a very short story about a curious fox."
    note: str = ""
    device: str = "CPU"
    guesses: bool = True

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        length, size = len(self.target), self.block or len(self.target)
        spans = [(start, min(start + size, length)) for start in range(0, length, size)]
        self.blocks = tuple((a, b, -(-(b - a) // self.per_step)) for a, b in spans)
        header = Header(
            run_id=f"sample-{self.seed}-{length}-{self.random.random():.6f}",
            created="2026-01-01T00:00:00Z",
            model="pocket",
            model_name="Pocket 135M",
            request={"length": length},
            seed=self.seed,
            prompt=self.prompt,
            prompt_tokens=12,
            length=length,
            blocks=self.blocks,
            stop_ids=(STOP,),
            device=self.device,
            dtype="float32",
            note=self.note,
        )
        self.trace = Trace(header)
        self.masked = set(range(length))
        self.said: dict[int, str] = {}

    def run(self, until: int | None = None) -> Actor:
        """Uncover block after block; `until` stops after that many frames."""
        for number, (start, end, _) in enumerate(self.blocks):
            while left := sorted(self.masked & set(range(start, end))):
                if until is not None and len(self.trace.frames) >= until:
                    return self
                weights = [1 / (1 + 0.6 * (at - left[0])) + 0.06 for at in left]
                chosen: set[int] = set()
                while len(chosen) < min(self.per_step, len(left)):
                    chosen.add(self.random.choices(left, weights)[0])
                self.frame([self.commit(at) for at in sorted(chosen)], number)
        return self

    def commit(self, at: int, kind: Kind = Kind.COMMIT) -> Change:
        """The true token at a position, with what else could have stood there."""
        token = self.target[at]
        sure = round(min(0.99, 0.28 + self.random.betavariate(2.2, 1.1) * 0.72), 3)
        rest, others = 1 - sure, []
        for _ in range(3):
            share = round(rest * self.random.uniform(0.2, 0.6), 3)
            rest -= share
            other = self.random.choice(self.target)
            others.append(Candidate(other.token_id, other.text, share, other.raw))
        best = Candidate(token.token_id, token.text, sure, token.raw)
        return Change(at, kind, token.token_id, token.text, sure, token.raw, (best, *others))

    def force(self, at: int) -> Change:
        """Padding, put there without asking the model."""
        return Change(at, Kind.FORCE, STOP, STOP_TEXT)

    def frame(self, changes: list[Change], block: int = 0) -> None:
        """Append one frame that makes these changes and guesses anew."""
        step = len(self.trace.frames) + 1
        for change in changes:
            if change.kind in (Kind.COMMIT, Kind.EDIT, Kind.FORCE, Kind.RENOISE):
                self.masked.discard(change.position)
        for change in changes:
            if change.kind is Kind.REMASK:
                self.masked.add(change.position)
                self.said.pop(change.position, None)
        sure = [c.confidence for c in changes if c.confidence is not None]
        self.trace.append(
            Frame(
                step=step,
                block=block,
                nfe=step,
                masks_left=len(self.masked),
                changes=tuple(changes),
                confidence_min=min(sure, default=None),
                confidence_mean=round(sum(sure) / len(sure), 4) if sure else None,
                model_seconds=round(self.random.uniform(0.03, 0.05), 4),
                elapsed=round(step * 0.045, 3),
                guesses=tuple(self.guess()) if self.guesses else (),
            )
        )

    def guess(self) -> list[Guess]:
        """Best guesses that changed: the truth more often the nearer the committed text is."""
        found = []
        first = min(self.masked, default=0)
        for at in sorted(self.masked):
            near = 1 / (1 + 0.12 * (at - first))
            if self.said and self.random.random() > 0.15 + 0.2 * near:
                continue
            true = self.random.random() < 0.25 + 0.6 * near
            token = self.target[at] if true else self.random.choice(self.target[: max(8, at)])
            text = token.text or "·"
            if self.said.get(at) != text:
                self.said[at] = text
                sure = (0.75 if true else 0.3) * near * self.random.uniform(0.5, 1) + 0.03
                found.append(Guess(at, text, round(sure, 3)))
        return found

    def end(self, result: Result = Result.FINISHED, message: str = "") -> Trace:
        """Close the trace with the text as it stands."""
        cells = self.trace.canvas_at(len(self.trace.frames))
        useful = []
        for cell in cells:
            if cell.token_id == STOP:
                break
            if cell.token_id is not None:
                useful.append(cell)
        data = b"".join(bytes.fromhex(c.raw) if c.raw else c.text.encode() for c in useful)
        forwards = len(self.trace.frames)
        seconds = sum(frame.model_seconds for frame in self.trace.frames)
        timings = Timings(queue=0.02, prefill=0.05, first_canvas=0.1, model=seconds, total=seconds + 0.1)
        text = data.decode("utf-8", "ignore")
        self.trace.append(Outcome(result, text, message, len(useful), forwards, timings))
        return self.trace


def padded(tokens: list[Token], stop: bool = True) -> list[Token]:
    """A text and its stop token."""
    return [*tokens, Token(STOP, STOP_TEXT)] if stop else tokens


def early() -> Trace:
    """The end comes early; the rest is filled with padding in one frame."""
    text = padded(words(STORY)[:30])
    actor = Actor([*text, *[Token(STOP, STOP_TEXT)] * 33], seed=11, block=32)
    while left := sorted(actor.masked & set(range(len(text)))):
        actor.frame([actor.commit(actor.random.choice(left[:4]))])
    actor.frame([actor.force(at) for at in sorted(actor.masked)], 1)
    return actor.end()


def corrections() -> Trace:
    """Tokens are taken back, changed, put in, taken out and drawn as noise."""
    actor = Actor(padded(words(STORY)[:40]), seed=5).run(until=26)
    settled = sorted(set(range(41)) - actor.masked)
    back, changed = settled[2:5], settled[7:9]
    actor.frame([Change(at, Kind.REMASK, None, "") for at in back])
    actor.frame([Change(at, Kind.EDIT, 900 + at, " quiet", 0.81) for at in changed])
    actor.frame([Change(at, Kind.RENOISE, 700 + at, " lantern", None) for at in sorted(actor.masked)[-3:]])
    noise = [c.position for c in actor.trace.frames[-1].changes]
    actor.frame([actor.commit(at) for at in noise])
    actor.run()
    actor.frame([Change(6, Kind.INSERT, 801, " old", 0.74), Change(12, Kind.DELETE, None, "")])
    return actor.end()


def samples() -> dict[str, Trace]:
    """Every sample by name."""
    cuts = random.Random(3)
    long_prompt = "Write a very short story about a curious fox. " * 12
    vast = [words(STORY)[i % 50] for i in range(1024)]
    return {
        "story": Actor(padded(words(STORY)), block=0).run().end(),
        "blocks": Actor(padded(words(STORY)), seed=8, block=8, per_step=2, prompt=long_prompt).run().end(),
        "recorded": Actor(words(STORY), note="Recorded on one H200", device="NVIDIA H200").run().end(),
        "bytes": Actor(padded(byte_tokens(EMOJI, cuts)), seed=4).run().end(),
        "rtl": Actor(padded(halves(ARABIC + HEBREW)), seed=9, prompt="اكتب قصة قصيرة عن ثعلب فضولي.").run().end(),
        "hostile": Actor(padded([Token(300 + i, text) for i, text in enumerate(HOSTILE)]), prompt="".join(HOSTILE))
        .run()
        .end(message="<b>${alert(1)}</b>"),
        "code": Actor(padded(words(CODE)), prompt="Write a greeting in Python.").run().end(),
        "corrections": corrections(),
        "early": early(),
        "stopped": Actor(words(STORY)).run(until=22).end(Result.STOPPED, "You stopped this run after 22 steps."),
        "deadline": Actor(words(STORY)).run(until=30).end(Result.DEADLINE, "The time limit of 2 s was reached."),
        "failed": Actor(words(STORY))
        .run(until=9)
        .end(Result.FAILED, "The device ran out of memory; try a shorter canvas."),
        "vast": Actor(vast, block=1024, prompt="A long one.").run().end(),
    }


def main() -> None:
    """Write the samples as JSON lines."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, trace in samples().items():
        (directory / f"{name}.jsonl").write_text(trace.to_lines(), encoding="utf-8")


if __name__ == "__main__":
    main()
