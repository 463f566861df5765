"""What opening a link to the page does: it fills in controls, or shows a stored run; pressing Run stays with people.

Whatever is wrong with a link becomes one sentence, and the page is as it would be without it. Must not know how links
are written (see `playground.share`).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from playground.denoisers.catalogue import CATALOGUE
from playground.request import GenerationRequest, RequestError, parse_request
from playground.runlog.problems import RunLogError
from playground.runlog.store import RunStore
from playground.settings import Settings
from playground.share import DEFAULTS, read_link
from playground.trace import TraceError
from playground.ui.components import turn_line
from playground.ui.generate import GenerateTab, value_of
from playground.ui.knobs import FIELDS

_MOST_FIELDS = 100


class LinkOpener:
    """Shows what the page's address asks for. Create inside a Blocks context.

    Args:
        generate: the tab that is filled in.
        store: the run log.
        settings: limits of this deployment.
        after: the event after which the address is read.
    """

    def __init__(self, generate: GenerateTab, store: RunStore, settings: Settings, after: Any) -> None:
        self._generate, self._store, self._settings = generate, store, settings
        # The script puts the address in; Gradio's own request gives each name only once.
        address = gr.Textbox(visible=False)
        after.then(
            self.open,
            address,
            [generate.viewer, generate.message, *generate.request_components],
            js="() => [location.search]",
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )

    def open(self, address: str) -> list[Any]:
        """Updates of viewer, message and controls for an address's query."""
        untouched = [gr.skip()] * len(self._generate.request_components)
        try:
            link = read_link(_fields(address))
            if link.run_id:
                return self._show_run(link.run_id)
            if link.values is None:
                return [gr.skip(), gr.skip(), *untouched]
            request = parse_request(link.values, self._settings.limits)
            self._check(request)
        except (RequestError, TraceError, RunLogError) as error:
            return [gr.skip(), str(error), *untouched]
        # An empty canvas: what a recording shows would pass for what the link means.
        said = "These settings come from a link; press Run to start." + _not_on_page(request)
        return [turn_line(), said, *self._generate.restore(request.model_dump(mode="json"))]

    def _show_run(self, run_id: str) -> list[Any]:
        """A stored run, whoever made it: its id cannot be guessed, so whoever has it was given it."""
        self._store.flush(2.0)
        trace = self._store.load_trace(run_id, None)
        if trace is None:
            raise RequestError("The run this link leads to is not in the log here; it may have been deleted.")
        request = {**trace.header.request, "seed": trace.header.seed}
        return [value_of(trace), "This run was opened from a link.", *self._generate.restore(request)]

    def _check(self, request: GenerationRequest) -> None:
        """Refuse what the page's controls could not show, and so would not run as the link says.

        Raises:
            RequestError: one sentence.
        """
        if request.model not in CATALOGUE:
            raise RequestError(f"The link asks for the model {request.model[:60]!r}, which is not here.")
        for name in FIELDS:
            control = self._generate.knobs.by_name[name]
            if isinstance(control, gr.Slider) and not control.minimum <= getattr(request, name) <= control.maximum:
                raise RequestError(
                    f"The link sets {name.replace('_', ' ')} to {getattr(request, name):g}; "
                    f"this page goes from {control.minimum:g} to {control.maximum:g}."
                )


def _fields(address: object) -> list[tuple[str, str]]:
    """The names and texts of a query.

    Raises:
        RequestError: there are far too many.
    """
    query = address.removeprefix("?") if isinstance(address, str) else ""
    try:
        return parse_qsl(query, keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise RequestError("The link has far too many parts; copy it again.") from None


def _not_on_page(request: GenerationRequest) -> str:
    """A sentence about settings that no control of the page shows, and that a run from here goes without."""
    ours = {"prompt", "model", "seed", *FIELDS}
    fields = GenerationRequest.model_fields
    others = [
        name
        for name in fields
        if name not in ours and getattr(request, name) != DEFAULTS.get(name, fields[name].default)
    ]
    names = ", ".join(others).replace("_", " ")
    return f" This page has no control for {names}, so a run here goes without." if names else ""
