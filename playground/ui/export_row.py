"""A row of buttons, one for each kind of file that a run can be taken along as. Must not know where runs come from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from playground.engine.run import Run
from playground.export.formats import FORMATS, Look, file_name
from playground.export.reading import read_traces
from playground.trace import Trace, TraceError
from playground.ui.components import text_line
from playground.ui.files import outgoing
from playground.ui.share import Linking, copies, share_line

PRESS = "() => setTimeout(() => document.getElementById('%s').click(), 100)"
"""Presses a hidden button, once what it does is there."""
_LOOKING = """(...values) => {
  const bar = document.querySelector('#%s .um-scrubber');
  const step = bar && !bar.disabled ? Number(bar.value) : null;
  return [...values.slice(0, -2), step, document.body.classList.contains('dark')];
}"""
"""Fills in the last two inputs: the step that a viewer shows, and whether the page is dark."""
FEW_AT_ONCE: dict[str, Any] = {"concurrency_id": "export", "concurrency_limit": 2}
"""Pictures take a core for seconds, so everybody's share one limit, which each event has to name (see Gradio)."""
SLOW = "gif"
NOTHING_SHOWN = "There is no run to export yet; press Run, or watch a recorded one."
NOT_HELD = "This run is too long ago for the app to hold it; open it from the Runs tab, then export it."


@dataclass(frozen=True, slots=True)
class Source:
    """Where a row's run comes from.

    `find` gives the trace for the values of `inputs` and raises `TraceError` with a sentence; `name` begins the ids of
    the row's elements; `viewer` is the id of the viewer whose step pictures show, without one it is the last.
    """

    name: str
    find: Callable[..., Trace]
    inputs: list[Any]
    viewer: str = "none"


class ExportRow:
    """Builds the row; create inside a Blocks context.

    Args:
        source: the run to export.
        linking: the link that the row's last button copies, if there is one.
    """

    def __init__(self, source: Source, linking: Linking | None = None) -> None:
        self._source = source
        name = source.name
        with gr.Row(elem_id=name, elem_classes="unmask-export") as self.row:
            gr.HTML('<p class="unmask-caption">Take it along</p>', apply_default_css=False)
            self.buttons = {kind: self._pill(known.title, kind) for kind, known in FORMATS.items()}
            link = self._pill("Copy link", "link") if linking else None
            # A download button fetches the file it already has; this one gets its file when asked, and is pressed.
            self.file = gr.DownloadButton(visible="hidden", elem_id=f"{name}-file")
            # What a script fills in: where the viewer is, and the page's colours.
            self.step = gr.Number(visible=False)
            self.dark = gr.Checkbox(visible=False)
        self.message = text_line(elem_id=f"{name}-message")
        if link and linking:
            copies(link, share_line(elem_id=f"{name}-line"), linking)
        self._connect()

    def _pill(self, title: str, kind: str) -> gr.Button:
        name = f"{self._source.name}-{kind}"
        return gr.Button(title, size="sm", elem_id=name, elem_classes="unmask-pill")

    def _connect(self) -> None:
        for kind, button in self.buttons.items():
            button.click(
                self._writer(kind),
                [*self._source.inputs, self.step, self.dark],
                [self.file, self.message],
                js=_LOOKING % self._source.viewer,
                show_progress="hidden",
                api_visibility="private",
                **FEW_AT_ONCE,
            ).success(None, [self.message], None, js=_press_if_silent(f"{self._source.name}-file"))

    def _writer(self, kind: str) -> Callable[..., Iterator[tuple[Any, str]]]:
        def write(*values: Any) -> Iterator[tuple[Any, str]]:
            *asked, step, dark = values
            try:
                trace = self._source.find(*asked)
                if kind == SLOW:
                    yield gr.skip(), "Drawing the pictures …"
                data = FORMATS[kind].write(trace, Look(self._step(trace, step), bool(dark)))
            except TraceError as error:
                yield gr.skip(), str(error)
                return
            yield outgoing.write(file_name(trace, kind), [data]), ""

        return write

    @staticmethod
    def _step(trace: Trace, step: object) -> int | None:
        """The viewer's step, where it can be one of this trace."""
        if isinstance(step, bool) or not isinstance(step, int | float):
            return None
        return int(step) if 0 <= step <= len(trace.frames) else None


def _press_if_silent(button: str) -> str:
    """Press the download button unless there was a sentence instead of a file."""
    return f"(said) => {{ if (!said) ({PRESS % button})(); }}"


def shown_by(find: Callable[[str], Run | None]) -> Callable[[object], Trace]:
    """`trace_of_value` for an app that holds runs; a `Source` finds its trace by it."""
    return partial(trace_of_value, find=find)


def _finds_none(run_id: str) -> Run | None:
    del run_id
    return None


def trace_of_value(value: object, find: Callable[[str], Run | None] = _finds_none) -> Trace:
    """The trace of what a viewer shows, as far as it has come.

    Args:
        value: what the viewer was sent; the page sends it back.
        find: gives the run of an id, where the value says that the viewer reads its lines by itself.

    Raises:
        TraceError: there is none, it is no longer held, or the page sent something else.
    """
    lines = value.split("\n")[:-1] if isinstance(value, str) else []  # only the last of them may be cut
    # The viewer's own lines stand between those of the trace.
    controls = [line for line in lines if line.startswith('{"type":"control"')]
    kept = [line for line in lines if not line.startswith('{"type":"control"')]
    if not kept:
        raise TraceError(NOTHING_SHOWN)
    if (run_id := _streamed(controls)) is not None:
        run = find(run_id)
        if run is None or run.trace is None:
            raise TraceError(NOT_HELD)
        # The worker may still be writing to its own.
        return Trace(run.trace.header, list(run.trace.frames), run.trace.outcome)
    return read_traces("\n".join(kept).encode("utf-8", "replace"), "What the page shows")[0]


def _streamed(controls: list[str]) -> str | None:
    """The id of the run that the viewer reads by itself, if these lines name one."""
    try:
        bodies = [json.loads(line) for line in controls]
    except (ValueError, RecursionError):
        raise TraceError("What the page shows is damaged; reload the page.") from None
    return next((run_id for body in bodies if isinstance(run_id := body.get("stream"), str)), None)
