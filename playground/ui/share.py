"""Buttons that copy a link, and a panel for teachers. What opening a link does is in `links`.

Must not know how links are written (see `playground.share`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from playground.request import RequestError, parse_request
from playground.settings import Settings
from playground.share import HIDEABLE, embed_query, query_of, run_query
from playground.trace import Header, TraceError, from_line
from playground.ui.components import STATIC_URL, plain
from playground.ui.knobs import Knobs, SeedRow, settings_of

_SCRIPT = f"""
import(new URL("{STATIC_URL}/share.js", document.baseURI).href).then((module) => {{
  const show = module.mountShare(element.querySelector(".unmask-share"));
  watch("value", () => show(props.value));
}});
"""
HEADER_ONLY = """(value) => {
  const at = value ? value.indexOf('{"type":"header"') : -1;
  const end = at < 0 ? -1 : value.indexOf("\\n", at);
  return [end < 0 ? "" : value.slice(at, end + 1)];
}"""
"""Sends a viewer's header line and not the whole run."""
NOTHING_TO_SHARE = "There is no run to link to yet; press Run, or watch a recorded one."
SETTINGS_SAID = "It fills in this prompt and these settings; whoever opens it presses Run."
SHOWN_SAID = "It fills in this run's prompt, settings and seed; whoever opens it presses Run."
RUN_SAID = "Whoever has it can watch this run, as long as it is in the log."


@dataclass(frozen=True, slots=True)
class Linking:
    """How a link comes about: `make` gives a query and a sentence for the values of some components.

    It raises `RequestError` or `TraceError` with a sentence where there is none. `js` may change the values first.
    """

    make: Callable[..., tuple[str, str]]
    inputs: list[Any] = field(default_factory=list)
    js: str | None = None


def share_line(**options: Any) -> gr.HTML:
    """Where a link is shown and confirmed; hidden until there is one."""
    return gr.HTML(
        "",
        html_template='<div class="unmask-share"></div>',
        js_on_load=_SCRIPT,
        apply_default_css=False,
        **options,
    )


def copies(button: gr.Button, line: gr.HTML, linking: Linking) -> None:
    """Have `button` copy a link, and `line` show it and say so."""

    def value(*values: Any) -> str:
        try:
            query, sentence = linking.make(*values)
            body = {"query": query, "sentence": sentence}
        except (RequestError, TraceError) as error:
            body = {"problem": str(error)}
        # The number makes the same link a new value, so that pressing again copies again.
        return plain(json.dumps({**body, "number": time.time_ns()}, ensure_ascii=False))

    quiet: dict[str, Any] = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
    button.click(value, linking.inputs, line, js=linking.js, **quiet)


def link_to_shown(lines: object) -> tuple[str, str]:
    """A link that makes the run again that a viewer shows, from its header line."""
    header = from_line(lines) if isinstance(lines, str) and lines.strip() else None
    if not isinstance(header, Header):
        raise TraceError(NOTHING_TO_SHARE)
    request = parse_request({**header.request, "seed": header.seed})
    return query_of(request.model_dump(mode="json")), SHOWN_SAID


def link_to_run(run_id: str, *_: Any) -> tuple[str, str]:
    """A link that opens a stored run."""
    if not run_id:
        raise RequestError("Choose a run first.")
    return run_query(run_id), RUN_SAID


class SharePanel:
    """What teachers need: a link to the settings as they stand, and what its page leaves out.

    Create inside a Blocks context.

    Args:
        settings: limits of this deployment.
        prompt: the control of the prompt.
        model: of the model.
        seed: of the seed and its lock.
        knobs: of everything else.
    """

    def __init__(self, settings: Settings, prompt: Any, model: Any, seed: SeedRow, knobs: Knobs) -> None:
        self._settings = settings
        with gr.Accordion("Share these settings", open=False, elem_id="share"):
            self.hidden = gr.CheckboxGroup(
                [(title, name) for name, title in HIDEABLE.items()],
                label="Leave out",
                info="For a simpler page, to hand out or to embed. It hides, it does not forbid.",
                elem_id="share-hide",
            )
            self.button = gr.Button("Copy link", elem_id="share-copy")
            self.line = share_line(elem_id="share-line")
        inputs = [self.hidden, prompt, model, seed.seed, seed.lock, *knobs.components]
        copies(self.button, self.line, Linking(self._link, inputs))

    def _link(
        self, hidden: list[str], prompt: str, model: str, seed: float | None, locked: bool, *knobs: Any
    ) -> tuple[str, str]:
        values = {"prompt": prompt, "model": model, **settings_of(knobs), "seed": seed if locked else None}
        request = parse_request(values, self._settings.limits)
        embedded = f"&{embed_query(hidden)}" if hidden else ""
        return query_of(request.model_dump(mode="json")) + embedded, SETTINGS_SAID
