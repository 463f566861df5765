"""Under the list of runs: the tree a run belongs to, and two of its runs side by side.

Knows the run log's rows, not its tables.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable
from typing import Any

import gradio as gr

from playground.runlog.problems import RunLogError
from playground.runlog.rows import RunRow
from playground.runlog.store import RunStore
from playground.ui.components import comparison, plain

_WORDS = re.compile(r"\s*\S+|\s+$")
LONGEST = 20_000
"""Characters of a text that are compared; aligning takes time that grows with their square."""


class Branches:
    """Builds the panel; create inside a Blocks context.

    Args:
        store: the run log.
        whose: gives the visitor whose runs may be seen, from the visitor that the page holds.
    """

    def __init__(self, store: RunStore, whose: Callable[[str | None], str | None]) -> None:
        self._store, self._whose = store, whose
        with gr.Group(visible=False, elem_id="branches", elem_classes="unmask-group") as self.panel:
            self.left = gr.Dropdown([], label="Tree of branches", elem_id="branches-left", min_width=200)
            self.right = gr.Dropdown([], label="Compare with", elem_id="branches-right", min_width=200)
            self.sides = comparison(elem_id="branches-sides")

    @property
    def outputs(self) -> list[Any]:
        """What `of` updates."""
        return [self.panel, self.left, self.right, self.sides]

    def of(self, run_id: str, visitor: str | None) -> list[Any]:
        """Updates of the panel for a chosen run; hidden where it is the only one of its tree."""
        family = self._family(run_id, visitor)
        if len(family) < 2:
            return [gr.update(visible=False), gr.skip(), gr.skip(), ""]
        choices = [(_named(depth, row), row.id) for depth, row in family]
        mine = next(row for _, row in family if row.id == run_id)
        other = mine.parent_run_id if any(row.id == mine.parent_run_id for _, row in family) else None
        other = other or next(row.id for _, row in family if row.id != run_id)
        return [
            gr.update(visible=True),
            gr.update(choices=choices, value=run_id),
            gr.update(choices=choices, value=other),
            self.compared(run_id, other, visitor),
        ]

    def connect(self, visitor: gr.BrowserState) -> None:
        """Compare anew when another run is chosen on either side."""
        for side in (self.left, self.right):
            side.input(
                self.compared,
                [self.left, self.right, visitor],
                self.sides,
                queue=False,
                show_progress="hidden",
                api_visibility="private",
            )

    def compared(self, left: str | None, right: str | None, visitor: str | None) -> str:
        """Both texts with what differs marked, as the component wants them; empty where one is not there."""
        rows = {row.id: row for _, row in self._family(left or "", visitor)}
        if left not in rows or right not in rows:
            return ""
        return comparison_of(rows[left], rows[right])

    def _family(self, run_id: str, visitor: str | None) -> list[tuple[int, RunRow]]:
        if not run_id:
            return []
        try:
            return self._store.family(run_id, self._whose(visitor))
        except RunLogError:
            return []  # the list above says so already


def _named(depth: int, row: RunRow) -> str:
    stem = "   " * (depth - 1) + ("└ " if depth else "")
    since = f"from step {row.parent_step}: " if depth and row.parent_step is not None else ""
    text = " ".join(row.text.split())
    return f"{stem}{row.created:%H:%M:%S} {since}{text[:60] or '(no text)'}"


def comparison_of(left: RunRow, right: RunRow) -> str:
    """Two runs' texts as JSON: for each a title, and stretches with whether they differ from the other's."""
    texts = [row.text[:LONGEST] for row in (left, right)]
    sides = [
        {"title": f"{row.created:%H:%M:%S} · {row.tokens} tokens, {row.forwards} forwards", "parts": parts}
        for row, parts in zip((left, right), marked(*texts), strict=True)
    ]
    return plain(json.dumps(sides, ensure_ascii=False))


def marked(left: str, right: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Each text in stretches, with whether a stretch is not in the other, word by word; joined they are the texts."""
    words = [_WORDS.findall(text) for text in (left, right)]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, some in zip(sides, (words[0][a:b], words[1][c:d]), strict=True):
            if some:
                side.append(("".join(some), kind != "equal"))
    return sides
