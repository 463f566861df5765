"""Recorded runs that a page can replay at once: what they are, making them, reading them.

`python -m playground record` makes them anew on the shipped weights. Must not know pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from playground.presets import PRESETS
from playground.settings import ROOT
from playground.trace import Trace, TraceError

FOLDER = ROOT / "assets" / "examples"

RECORDINGS: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("story", "A very short story", "Write a very short story about a tiny dragon.", {"preset": "balanced"}),
    ("tips", "Three tips", "Give me three tips to sleep better.", {"preset": "balanced"}),
    ("order", "Any order, one at a time", "What is special about owls?", {"preset": "any-order"}),
    ("salad", "Word salad in 12 steps", "Explain rain to a child.", {"preset": "few-steps"}),
)
"""Name of the file, title, prompt and settings of each recording."""


@dataclass(frozen=True, slots=True)
class Example:
    """A recorded run and its title."""

    title: str
    trace: Trace

    @property
    def prompt(self) -> str:
        """The prompt it was made from."""
        return self.trace.header.prompt


def record(folder: Path = FOLDER) -> list[Path]:
    """Run every recording on the real model and write its trace; gives the files written."""
    from playground.engine.pipeline import DenoisingPipeline

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with DenoisingPipeline("pocket") as pipeline:
        for name, title, prompt, knobs in RECORDINGS:
            values = {**PRESETS[knobs["preset"]].values, **{k: v for k, v in knobs.items() if k != "preset"}}
            trace = pipeline.trace(prompt, seed=1, **values)
            note = f"Recorded {trace.header.created[:10]} on {trace.header.device}"
            path = folder / f"{name}.jsonl"
            path.write_text(Trace(replace(trace.header, note=note), trace.frames, trace.outcome).to_lines(), "utf-8")
            written.append(path)
            del title
    return written


def load(folder: Path = FOLDER) -> list[Example]:
    """The recordings that are there and readable, in the order of `RECORDINGS`."""
    examples = []
    for name, title, _, _ in RECORDINGS:
        try:
            examples.append(Example(title, Trace.from_lines((folder / f"{name}.jsonl").read_text("utf-8"))))
        except (OSError, TraceError):
            continue
    return examples
