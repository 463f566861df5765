"""The JSON tab: a schema or a list of tools in, JSON that holds to it out, each value's making to be watched.

Knows the engine's filling, not the run log.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import gradio as gr

from playground.engine.engine import Engine
from playground.engine.structured import SlotReport, Structured, StructuredFilling
from playground.infill.pieces import SchemaError
from playground.request import RequestError
from playground.settings import Settings
from playground.ui.components import plain, text_line, turn_line, viewer
from playground.ui.export_row import ExportRow, Source, shown_by
from playground.ui.live import Sessions, stream

LONGEST = 200_000
"""Characters of a schema."""
HEADINGS = ["Where", "What stands there", "What was compared, likeliest first"]
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "city": {"type": "string"},
        "mood": {"enum": ["happy", "sad", "angry"]},
    },
    "required": ["name", "age", "city", "mood"],
}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
                "required": ["city", "unit"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "send_message",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
                "required": ["to", "text"],
            },
        },
    },
]
LIST = {"type": "array", "items": {"enum": ["red", "green", "blue", "yellow"]}, "minItems": 1, "maxItems": 3}
EXAMPLES = (
    ("A person", PERSON, "Anna is 30 years old and lives in Oslo. She is very happy. Describe her as JSON."),
    ("A call of a tool", TOOLS, "What is the weather in Paris, in celsius? Answer with a call of a tool as JSON."),
    ("A list", LIST, "Which colours has the flag of France? Answer with a JSON list."),
)
VALID = "It holds to the schema. Whether what it says is right, nobody has checked."
HIDDEN: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


class StructuredTab:
    """Builds the tab; create inside a Blocks context.

    Args:
        engine: runs requests.
        settings: limits, and what happens to runs whose page goes away.
        visitor: component that holds whose page this is.
    """

    def __init__(self, engine: Engine, settings: Settings, visitor: gr.BrowserState) -> None:
        self._engine, self._settings = engine, settings
        self._sessions = Sessions()
        with gr.Row(elem_id="json"):
            with gr.Column(elem_classes="unmask-controls", min_width=280):
                self._build_ask()
            with gr.Column(elem_classes="unmask-controls", min_width=280):
                self._build_result()
        self._connect(visitor)

    def _build_ask(self) -> None:
        _, schema, prompt = EXAMPLES[0]
        self.prompt = gr.Textbox(
            value=prompt, label="What it is about", lines=3, max_lines=8, max_length=LONGEST, elem_id="json-prompt"
        )
        self.schema = gr.Textbox(
            value=json.dumps(schema, indent=2),
            label="JSON Schema, or a list of tools",
            info="Braces, keys and commas are locked; what stands between them is masked and filled.",
            lines=12,
            max_lines=24,
            max_length=LONGEST,
            elem_id="json-schema",
        )
        with gr.Row(elem_id="json-actions"):
            self.fill = gr.Button("Fill", variant="primary", elem_id="json-fill", min_width=120)
            self.stop = gr.Button("Stop", variant="stop", elem_id="json-stop", min_width=120, visible=False)
        self.message = text_line(elem_id="json-message")
        gr.HTML('<p class="unmask-caption">Try one of these</p>', apply_default_css=False)
        with gr.Row(elem_id="json-examples"):
            self.examples = [gr.Button(title, size="sm", min_width=80) for title, _, _ in EXAMPLES]
        self.seed = gr.Number(
            value=0, label="Seed", info="Fixes what is drawn, where something is drawn.", elem_id="json-seed"
        )

    def _build_result(self) -> None:
        self.viewer = viewer(elem_id="json-viewer")
        self.exports = ExportRow(Source("json-export", shown_by(self._engine.find), [self.viewer], "json-viewer"))
        self.result = gr.Textbox(
            label="JSON", lines=4, max_lines=18, interactive=False, buttons=["copy"], elem_id="json-result"
        )
        self.verdict = text_line(elem_id="json-verdict")
        with gr.Accordion("Every value and what it was chosen from", open=False, elem_id="json-slots"):
            gr.HTML(
                '<p class="unmask-caption">Numbers are mean log probabilities a token, read from left to right; nearer '
                "0 is likelier. A value is compared at several lengths in tokens, a choice with its other options.</p>",
                apply_default_css=False,
            )
            self.table = gr.Dataframe(
                headers=HEADINGS, type="array", interactive=False, show_label=False, buttons=[], wrap=True
            )

    # --- what happens ---------------------------------------------------------------------------

    def _connect(self, visitor: gr.BrowserState) -> None:
        outputs = [self.viewer, self.message, self.fill, self.stop, self.result, self.verdict, self.table]
        self.filling = self.fill.click(
            self._fill,
            [visitor, self.schema, self.prompt, self.seed],
            outputs,
            concurrency_limit=None,
            **HIDDEN,
        )
        self.stop.click(self._stop, None, None, queue=False, **HIDDEN)
        for button, (_, schema, prompt) in zip(self.examples, EXAMPLES, strict=True):
            shown = json.dumps(schema, indent=2)
            button.click(
                lambda shown=shown, prompt=prompt: (shown, prompt),
                None,
                [self.schema, self.prompt],
                queue=False,
                **HIDDEN,
            )

    def _fill(
        self, request: gr.Request, visitor: str | None, schema: str, prompt: str, seed: float | None
    ) -> Iterator[list[Any]]:
        session = request.session_hash or ""
        try:
            values = {"prompt": prompt or "", "seed": 0 if seed is None else seed}
            filling = StructuredFilling(
                self._engine, _read(schema), values, visitor=visitor or f"session-{request.session_hash}"
            )
        except (RequestError, SchemaError) as error:
            yield _said(str(error))
            return
        self._sessions.start(session, filling)
        try:
            yield from self._stream(filling)
            if filling.result is not None:
                yield _shown(filling.result)
        except (RequestError, SchemaError) as error:  # the queue is full, or a forward failed
            yield [gr.skip(), str(error), *_buttons(running=False), *[gr.skip()] * 3]
        finally:
            self._sessions.forget(session, filling)
            if self._settings.on_disconnect == "stop":
                filling.cancel()

    def _stream(self, filling: StructuredFilling) -> Iterator[list[Any]]:
        """Every try in the viewer, as it goes."""
        for progress in filling:
            doing = progress.doing[:1].upper() + progress.doing[1:]
            said: Any = f"{doing} …"
            for value in stream(progress.run, self._engine):
                yield [value, said, *_buttons(running=True), *[gr.skip()] * 3]
                said = gr.skip()

    def _stop(self, request: gr.Request) -> None:
        self._sessions.stop(request.session_hash or "")


def _read(schema: str) -> object:
    if len(schema or "") > LONGEST:
        raise SchemaError(f"The schema is over {LONGEST:,} characters; ask for fewer fields at once.")
    try:
        return json.loads(schema or "")
    except json.JSONDecodeError as error:
        raise SchemaError(f"The schema is not JSON ({error.msg} in line {error.lineno}); mend it.") from None
    except (RecursionError, ValueError):
        raise SchemaError("The schema goes too deep or holds too long a number; make it simpler.") from None


def _shown(found: Structured) -> list[Any]:
    verdict = VALID if found.valid else f"It does not hold to the schema: {'; '.join(found.problems[:3])}"
    value = gr.skip() if found.trace is None else turn_line() + plain(found.trace.to_lines())
    rows = [[slot.path, _words(slot), _compared(slot)] for slot in found.slots]
    return [value, "", *_buttons(running=False), found.text, verdict, rows]


def _words(slot: SlotReport) -> str:
    again = f" (masked again: {slot.again})" if slot.again else ""
    return f"{slot.text[:120]}{again}"


def _compared(slot: SlotReport) -> str:
    best = sorted(slot.compared, key=lambda pair: -pair[1])
    return ", ".join(f"{what[:24]} {'unfinished' if math.isinf(score) else f'{score:.2f}'}" for what, score in best)


def _said(sentence: str) -> list[Any]:
    return [gr.skip(), sentence, *[gr.skip()] * 5]


def _buttons(*, running: bool) -> list[Any]:
    return [gr.update(visible=not running), gr.update(visible=running)]
