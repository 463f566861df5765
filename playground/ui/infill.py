"""The Infill tab: text with blanks in, filled text out, every try to be watched, candidates to choose from.

Knows the engine's filling, not the run log.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.engine.engine import Engine
from playground.engine.filling import INSTRUCTION, Filled, Filling
from playground.infill.markup import Blank, MarkupError, Template, parse
from playground.request import RequestError
from playground.settings import Settings
from playground.ui.components import plain, text_line, turn_line, viewer
from playground.ui.export_row import ExportRow, Source, shown_by
from playground.ui.live import Sessions, stream

GONE = "The page went away; the text so far is kept."
EXAMPLES = (
    ("A word or two", "She forgot her[[ ]] at home, so she had to[[2]] at the door.", INSTRUCTION),
    ("A middle", "The old man opened the letter.[[12]] Then he smiled and put it in his pocket.", INSTRUCTION),
    ("Code", "def average(numbers):\n    total =[[2]](numbers)\n    return total /[[2]](numbers)\n", "Write Python."),
)
ORDERS = [("Together: the surest position first", "together"), ("In order: from left to right", "in order")]
HEADINGS = ["Tokens", "Score", "What stands in the blanks"]
MOST_CANDIDATES = 4
NOTHING = "Nothing has been filled yet."


@dataclass(slots=True)
class Kept:
    """What a page has had filled: the template, the candidates, and which one is shown."""

    template: Template
    candidates: list[Filled]
    shown: int = 0


class InfillTab:
    """Builds the tab; create inside a Blocks context.

    Args:
        engine: runs requests.
        settings: limits, and what happens to runs whose page goes away.
        visitor: component that holds whose page this is.
    """

    def __init__(self, engine: Engine, settings: Settings, visitor: gr.BrowserState) -> None:
        self._engine, self._settings = engine, settings
        self._sessions = Sessions()
        with gr.Row(elem_id="infill"):
            with gr.Column(elem_id="infill-ask", elem_classes="unmask-controls", min_width=280):
                self._build_ask()
            with gr.Column(elem_id="infill-watch", elem_classes="unmask-controls", min_width=280):
                self._build_result()
        self._connect(visitor)

    # --- what is on the page --------------------------------------------------------------------

    def _build_ask(self) -> None:
        self.text = gr.Textbox(
            value=EXAMPLES[0][1],
            label="Text with blanks",
            info="[[ ]] is a blank of any length, [[8]] of eight tokens, [[4-12]] of four to twelve.",
            lines=7,
            max_lines=18,
            elem_id="infill-text",
        )
        gr.HTML(
            '<button type="button" id="infill-blank">Blank out the selection</button>',
            apply_default_css=False,
        )
        with gr.Row(elem_id="infill-actions"):
            self.fill = gr.Button("Fill", variant="primary", elem_id="infill-fill", min_width=120)
            self.stop = gr.Button("Stop", variant="stop", elem_id="infill-stop", min_width=120, visible=False)
        self.message = text_line(elem_id="infill-message")
        gr.HTML('<p class="unmask-caption">Try one of these</p>', apply_default_css=False)
        with gr.Row(elem_id="infill-examples"):
            self.examples = [gr.Button(title, size="sm", min_width=80) for title, _, _ in EXAMPLES]
        with gr.Group(elem_classes="unmask-group"):
            self.prompt = gr.Textbox(
                value=INSTRUCTION, label="Instruction", info="What the whole text is.", elem_id="infill-prompt"
            )
            self.order = gr.Dropdown(
                ORDERS, value="together", label="Order", info="Which position is filled next.", elem_id="infill-order"
            )
            self.rescore = gr.Checkbox(
                value=True,
                label="Try candidates in the whole text",
                info="Two more forwards a position, and much better fits: the model proposes, the whole text decides.",
                elem_id="infill-rescore",
            )
            self.keep = gr.Slider(
                1,
                MOST_CANDIDATES,
                1,
                step=1,
                label="Candidates",
                info="How many ways to fill the blanks; all but the first are drawn at random.",
                elem_id="infill-keep",
            )
            self.seed = gr.Number(value=0, label="Seed", info="Fixes what is drawn.", elem_id="infill-seed")
        with gr.Accordion("What may not stand there", open=False):
            self.banned = gr.Textbox(
                label="Banned words", info="Parted by commas; in either case.", elem_id="infill-banned"
            )
            self.one_line = gr.Checkbox(
                value=False, label="Stay on one line", info="No line break in a blank.", elem_id="infill-one-line"
            )

    def _build_result(self) -> None:
        self.viewer = viewer(elem_id="infill-viewer")
        self.exports = ExportRow(Source("infill-export", shown_by(self._engine.find), [self.viewer], "infill-viewer"))
        self.kept = gr.State(None)
        self.candidates = gr.Radio([], label="Candidates, best first", visible=False, elem_id="infill-candidates")
        self.result = gr.Textbox(
            label="Filled text", lines=4, max_lines=18, interactive=False, buttons=["copy"], elem_id="infill-result"
        )
        with gr.Row(elem_id="infill-refill-row", equal_height=True):
            self.which = gr.Dropdown([], label="One blank again", elem_id="infill-which", min_width=160)
            self.refill = gr.Button("Refill it", elem_id="infill-refill", interactive=False, min_width=100)
        with gr.Accordion("Every try and its score", open=False, elem_id="infill-tries"):
            gr.HTML(
                '<p class="unmask-caption">Score: mean log probability a token of the text from the first blank on, '
                "read from left to right; nearer 0 is likelier. The best length is the one whose text scores best.</p>",
                apply_default_css=False,
            )
            self.table = gr.Dataframe(
                headers=HEADINGS, type="array", interactive=False, show_label=False, buttons=[], elem_id="infill-table"
            )

    # --- what happens ---------------------------------------------------------------------------

    def _connect(self, visitor: gr.BrowserState) -> None:
        hidden: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        knobs = [self.prompt, self.order, self.rescore, self.keep, self.seed, self.banned, self.one_line]
        outputs = [
            self.viewer,
            self.message,
            self.fill,
            self.stop,
            self.kept,
            self.candidates,
            self.result,
            self.which,
            self.refill,
            self.table,
        ]
        self.filling = self.fill.click(
            self._fill, [visitor, self.text, *knobs], outputs, concurrency_limit=None, **hidden
        )
        self.refill.click(
            self._refill, [visitor, self.kept, self.which, *knobs], outputs, concurrency_limit=None, **hidden
        )
        self.stop.click(self._stop, None, None, queue=False, **hidden)
        self.candidates.input(
            self._choose, [self.kept, self.candidates], [self.kept, self.viewer, self.result], queue=False, **hidden
        )
        for button, (_, text, prompt) in zip(self.examples, EXAMPLES, strict=True):
            button.click(
                lambda text=text, prompt=prompt: (text, prompt), None, [self.text, self.prompt], queue=False, **hidden
            )

    def _fill(self, request: gr.Request, visitor: str | None, text: str, *knobs: Any) -> Iterator[list[Any]]:
        try:
            template = parse(text or "")
        except MarkupError as error:
            yield _said(str(error))
            return
        yield from self._run(request, visitor, template, template, knobs)

    def _refill(
        self, request: gr.Request, visitor: str | None, kept: Kept | None, which: str | None, *knobs: Any
    ) -> Iterator[list[Any]]:
        """Fill one blank anew; what stands in the others is now text that stays."""
        if kept is None or not kept.candidates or which is None:
            yield _said("Fill the text first; then one of its blanks can be filled again.")
            return
        found = kept.candidates[kept.shown]
        number = int(which) - 1
        words = iter(enumerate(found.blanks))
        pieces: list[str | Blank] = []
        for piece in kept.template.pieces:
            if isinstance(piece, str):
                pieces.append(piece)
            else:
                at, text = next(words)
                pieces.append(piece if at == number else text)
        # The blank is drawn anew, or it would come out as before.
        yield from self._run(request, visitor, Template(tuple(pieces)), kept.template, knobs, again=(number, found))

    def _run(  # noqa: PLR0917
        self,
        request: gr.Request,
        visitor: str | None,
        template: Template,
        whole: Template,
        knobs: tuple[Any, ...],
        again: tuple[int, Filled] | None = None,
    ) -> Iterator[list[Any]]:
        session = request.session_hash or ""
        try:
            values, keep = _values(*knobs)
            if again is not None:
                values |= {"temperature": 1.0, "correction": "none", "seed": values["seed"] + 1 + again[0]}
            filling = Filling(
                self._engine, template, values, keep=keep, visitor=visitor or f"session-{request.session_hash}"
            )
        except RequestError as error:
            yield _said(str(error))
            return
        self._sessions.start(session, filling)
        try:
            yield from self._stream(filling)
            yield self._shown(filling, whole, again)
        except RequestError as error:  # the queue is full
            yield [gr.skip(), str(error), *_buttons(running=False), *[gr.skip()] * 6]
        finally:
            self._sessions.forget(session, filling)
            if self._settings.on_disconnect == "stop":
                filling.cancel()

    def _stream(self, filling: Filling) -> Iterator[list[Any]]:
        """Every try in the viewer, as it goes."""
        seen = set()
        for progress in filling:
            if progress.run.id in seen:
                continue
            seen.add(progress.run.id)
            doing = progress.doing[:1].upper() + progress.doing[1:]
            said = f"{doing} …" if len(filling.template.blanks) > 0 else ""
            for value in stream(progress.run, self._engine):
                yield [value, said, *_buttons(running=True), *[gr.skip()] * 6]
                said = gr.skip()

    def _shown(self, filling: Filling, whole: Template, again: tuple[int, Filled] | None) -> list[Any]:
        candidates = filling.candidates
        if again is not None:
            candidates = [_joined(found, again, whole) for found in candidates]
        kept = Kept(whole, candidates)
        best = candidates[0]
        blanks = [str(number + 1) for number in range(len(whole.blanks))]
        return [
            _value(best),
            best.failed,
            *_buttons(running=False),
            kept,
            gr.update(choices=_choices(candidates), value=0, visible=len(candidates) > 1),
            best.text,
            gr.update(choices=blanks, value=blanks[0] if blanks else None),
            gr.update(interactive=bool(blanks)),
            [_row(found) for found in filling.tries],
        ]

    @staticmethod
    def _choose(kept: Kept | None, chosen: int | None) -> list[Any]:
        if kept is None or chosen is None:
            return [gr.skip()] * 3
        kept.shown = int(chosen)
        found = kept.candidates[kept.shown]
        return [kept, _value(found), found.text]

    def _stop(self, request: gr.Request) -> None:
        self._sessions.stop(request.session_hash or "")


def _values(  # noqa: PLR0917
    prompt: str, order: str, rescore: bool, keep: float, seed: float | None, banned: str, one_line: bool
) -> tuple[dict[str, Any], int]:
    """Controls as request fields, and how many candidates are wanted."""
    if not 1 <= (keep or 0) <= MOST_CANDIDATES or keep != int(keep):
        raise RequestError(f"Candidates must be a whole number from 1 to {MOST_CANDIDATES}.")
    values: dict[str, Any] = {
        "prompt": prompt or INSTRUCTION,
        "confidence": "leftmost" if order == "in order" else "probability",
        "correction": "rescore" if rescore else "none",
        "seed": 0 if seed is None else seed,
        "banned": [word.strip() for word in (banned or "").split(",") if word.strip()],
        "one_line": bool(one_line),
    }
    return values, int(keep)


def _said(sentence: str) -> list[Any]:
    return [gr.skip(), sentence, *[gr.skip()] * 8]


def _buttons(*, running: bool) -> list[Any]:
    return [gr.update(visible=not running), gr.update(visible=running)]


def _joined(found: Filled, again: tuple[int, Filled], whole: Template) -> Filled:
    """A refilled blank among the others' words."""
    number, before = again
    blanks = list(before.blanks)
    blanks[number] = found.blanks[0]
    return Filled(whole.filled(blanks), tuple(blanks), found.lengths, found.score, found.trace, found.draft)


def _value(found: Filled) -> str:
    return turn_line() + plain(found.trace.to_lines())


def _choices(candidates: list[Filled]) -> list[tuple[str, int]]:
    return [(f"{_score(found)}  {_words(found)}", at) for at, found in enumerate(candidates)]


def _row(found: Filled) -> list[str]:
    return [" + ".join(map(str, found.lengths)), _score(found), _words(found)]


def _score(found: Filled) -> str:
    return "unfinished" if math.isinf(found.score) else f"{found.score:.3f}"


def _words(found: Filled) -> str:
    """What stands in the blanks, on one line."""
    return "  ·  ".join(" ".join(text.split()) or "(nothing)" for text in found.blanks)[:200]
