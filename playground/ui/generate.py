"""The Generate tab: ask, watch the canvas resolve, stop, replay."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from playground.denoisers.catalogue import CATALOGUE
from playground.engine.engine import Engine
from playground.engine.run import Run
from playground.labs.examples import Example
from playground.presets import DEFAULT_PRESET, PRESETS
from playground.request import MAX_SEED, RequestError, parse_request
from playground.settings import Settings
from playground.trace import Trace
from playground.ui.branching import asked_of, branch_request
from playground.ui.components import control_line, plain, text_line, turn_line, viewer
from playground.ui.export_row import ExportRow, Source, shown_by
from playground.ui.knobs import DECIDING, FIELDS, Knobs, SeedRow, completed, settings_of
from playground.ui.live import Sessions, stream
from playground.ui.share import HEADER_ONLY, Linking, SharePanel, link_to_shown

GONE = "The page went away; the text so far is kept."


class GenerateTab:
    """Builds the tab; create inside a Blocks context.

    Args:
        engine: runs requests.
        settings: limits of the sliders, and what happens to a run whose page goes away.
        visitor: component that holds whose page this is.
        examples: recorded runs that replay at once; the first is shown on a fresh page.
    """

    def __init__(self, engine: Engine, settings: Settings, visitor: gr.BrowserState, examples: list[Example]) -> None:
        self._engine, self._settings = engine, settings
        self._sessions = Sessions()
        self._examples = examples
        with gr.Row(elem_id="generate"):
            with gr.Column(elem_id="ask", elem_classes="unmask-controls", min_width=280):
                self._build_ask(examples)
            with gr.Column(elem_id="watch", min_width=280):
                self.viewer = viewer(first_value(examples), elem_id="viewer")
                self.exports = ExportRow(
                    Source("export", shown_by(self._engine.find), [self.viewer], "viewer"),
                    Linking(link_to_shown, [self.viewer], HEADER_ONLY),
                )
            with gr.Column(elem_id="settings", elem_classes="unmask-controls", min_width=280):
                self._build_settings()
        self._connect(visitor)

    # --- what is on the page --------------------------------------------------------------------

    def _build_ask(self, examples: list[Example]) -> None:
        self.prompt = gr.Textbox(
            value=examples[0].prompt if examples else "",
            label="Prompt",
            placeholder="What should the text be about?",
            lines=3,
            max_lines=8,
            max_length=self._settings.max_prompt_characters,
            elem_id="prompt",
        )
        with gr.Row(elem_id="actions"):
            self.run = gr.Button("Run", variant="primary", elem_id="run", min_width=120)
            self.stop = gr.Button("Stop", variant="stop", elem_id="stop", min_width=120, visible=False)
            gr.HTML(
                '<p class="unmask-keys"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs, <kbd>Esc</kbd> stops, '
                "<kbd>←</kbd> <kbd>→</kbd> step</p>",
                apply_default_css=False,
                elem_id="keys",
            )
        self.message = text_line(elem_id="message")
        self.example_buttons: list[gr.Button] = []
        if examples:
            with gr.Group(elem_id="examples"):
                gr.HTML('<p class="unmask-caption">Watch a recorded run</p>', apply_default_css=False)
                self.example_buttons = [
                    gr.Button(example.title, size="sm", elem_classes="unmask-example") for example in examples
                ]

    def _build_settings(self) -> None:
        self.presets = gr.Radio(
            [(preset.title, name) for name, preset in PRESETS.items()],
            value=DEFAULT_PRESET,
            label="Preset",
            info=PRESETS[DEFAULT_PRESET].sentence,
            elem_id="presets",
        )
        self.model = gr.Dropdown(
            [(f"{entry.name} · {entry.parameters}", name) for name, entry in CATALOGUE.items()],
            value=next(iter(CATALOGUE)),
            label="Model",
            info=next(iter(CATALOGUE.values())).good_at,
            elem_id="model",
        )
        self.knobs = Knobs(self._settings)
        self.seed = SeedRow()
        self.share = SharePanel(self._settings, self.prompt, self.model, self.seed, self.knobs)

    @property
    def request_components(self) -> list[Any]:
        """Everything a stored request sets: prompt, model, seed, lock, then the knobs."""
        return [self.prompt, self.model, self.seed.seed, self.seed.lock, self.presets, *self.knobs.components]

    def restore(self, request: dict[str, Any]) -> list[Any]:
        """Updates of `request_components` for a stored request; its seed comes back locked."""
        request = completed(request)
        return [
            request["prompt"],
            request["model"] if request["model"] in CATALOGUE else gr.skip(),
            request.get("seed"),
            request.get("seed") is not None,
            _preset_update(request),
            *self.knobs.updates(request),
        ]

    # --- what happens ---------------------------------------------------------------------------

    def _connect(self, visitor: gr.BrowserState) -> None:
        hidden: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.running = self.run.click(
            self._generate,
            [visitor, self.prompt, self.model, self.seed.seed, self.seed.lock, *self.knobs.components],
            [self.viewer, self.message, self.run, self.stop, self.seed.seed],
            concurrency_limit=None,
            **hidden,
        )
        self.branching = self.viewer.submit(
            self._act,
            [visitor, self.seed.seed, self.seed.lock, *self.knobs.components],
            [self.viewer, self.message, self.run, self.stop, self.seed.seed],
            concurrency_limit=None,
            trigger_mode="multiple",
            **hidden,
        )
        self.stop.click(self._stop, None, None, queue=False, **hidden)
        self.seed.dice.click(
            lambda: (secrets.randbelow(MAX_SEED + 1), True),
            None,
            [self.seed.seed, self.seed.lock],
            queue=False,
            **hidden,
        )
        self.presets.input(self._preset, self.presets, [self.presets, *self.knobs.components], queue=False, **hidden)
        for decides in DECIDING:
            control = self.knobs.by_name[decides]
            control.input(  # type: ignore[attr-defined]
                lambda value, decides=decides: self.knobs.updates({decides: value}),
                control,
                self.knobs.components,
                queue=False,
                **hidden,
            )
        self.model.change(
            lambda name: gr.update(info=CATALOGUE[name].good_at), self.model, self.model, queue=False, **hidden
        )
        for name in FIELDS:
            if name in PRESETS[DEFAULT_PRESET].values:
                # "input" fires for people only, so choosing a preset does not unchoose it.
                self.knobs.by_name[name].input(  # type: ignore[attr-defined]
                    lambda: gr.update(value=None, info="Your own settings."), None, self.presets, queue=False, **hidden
                )
        for button, example in zip(self.example_buttons, self._examples, strict=True):
            button.click(
                lambda example=example: self._show_example(example),
                None,
                [self.viewer, self.run, self.stop, self.message, *self.request_components],
                cancels=[self.running, self.branching],
                queue=False,
                **hidden,
            )

    def _generate(  # noqa: PLR0917  (Gradio passes inputs by position)
        self,
        request: gr.Request,
        visitor: str | None,
        prompt: str,
        model: str,
        seed: float | None,
        locked: bool,
        *knobs: Any,
    ) -> Iterator[Any]:
        """Submit, then stream; Run becomes Stop in place until the end."""
        values = {"prompt": prompt, "model": model, **settings_of(knobs)}
        try:
            if locked and seed is None:
                raise RequestError("The seed is locked but empty; type a number or unlock it.")
            asked = parse_request({**values, "seed": seed if locked else None}, self._settings.limits)
            run = self._engine.submit(asked, visitor or f"session-{request.session_hash}")
        except RequestError as error:
            yield gr.skip(), str(error), gr.skip(), gr.skip(), gr.skip()
            return
        yield from self._show(request, run)

    def _show(self, request: gr.Request, run: Run) -> Iterator[Any]:
        """Stream a run into the viewer."""
        session = request.session_hash or ""
        self._sessions.start(session, run)
        try:
            first = True
            for value in stream(run, self._engine):
                if first:
                    first = False
                    yield value, "", gr.update(visible=False), gr.update(visible=True), run.seed
                else:
                    yield value, gr.skip(), gr.skip(), gr.skip(), gr.skip()
            if self._sessions.forget(session, run):
                yield gr.skip(), "", gr.update(visible=True), gr.update(visible=False), gr.skip()
        finally:
            self._sessions.forget(session, run)
            if self._settings.on_disconnect == "stop":
                run.cancel(GONE)

    def _act(
        self,
        request: gr.Request,
        event: gr.EventData,
        visitor: str | None,
        seed: float | None,
        locked: bool,
        *knobs: Any,
    ) -> Iterator[Any]:
        """Hold the run this page shows, let it go on, or run from an edited canvas."""
        nothing = (gr.skip(),) * 5
        try:
            action, detail = asked_of(event._data)
            shown = self._sessions.shown(request.session_hash or "")
            if action in ("hold", "resume"):
                if isinstance(shown, Run) and shown.id == detail.get("run"):
                    (shown.pause if action == "hold" else shown.resume)()
                yield nothing
                return
            asked = branch_request(detail, settings_of(knobs), seed if locked else None, self._settings.limits)
            run = self._engine.submit(asked, visitor or f"session-{request.session_hash}")
        except RequestError as error:
            yield gr.skip(), str(error), gr.skip(), gr.skip(), gr.skip()
            return
        yield from self._show(request, run)

    def _stop(self, request: gr.Request) -> None:
        self._sessions.stop(request.session_hash or "")

    def _preset(self, name: str) -> list[Any]:
        preset = PRESETS[name]
        return [gr.update(info=preset.sentence), *self.knobs.updates(preset.values)]

    def _show_example(self, example: Example) -> list[Any]:
        request = {**example.trace.header.request, "seed": None}
        return [
            value_of(example.trace, autoplay=True),
            gr.update(visible=True),
            gr.update(visible=False),
            "",
            *self.restore(request),
        ]


def _preset_update(request: Mapping[str, Any]) -> Any:
    """Light the preset whose settings a request has, or none."""
    for name, preset in PRESETS.items():
        if all(request.get(field) == value for field, value in preset.values.items()):
            return gr.update(value=name, info=preset.sentence)
    return gr.update(value=None, info="Your own settings.")


def value_of(trace: Trace, *, autoplay: bool = False) -> str:
    """A trace that will not grow as the viewer's value."""
    return turn_line() + plain(trace.to_lines()) + control_line(ended=True, autoplay=autoplay or None)


def first_value(examples: list[Example]) -> str:
    """What a fresh page shows: the first recording, playing."""
    return value_of(examples[0].trace, autoplay=True) if examples else ""
