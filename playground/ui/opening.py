"""A button that opens a file in the viewer: an export of this app, read and checked like everything from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from playground.export.reading import MAX_BYTES, runs_in
from playground.trace import Trace, TraceError
from playground.ui.export_row import FEW_AT_ONCE
from playground.ui.generate import GenerateTab, value_of


class OpenFile:
    """Builds the button; create inside a Blocks context.

    Args:
        generate: the tab whose viewer shows the run.
        show_generate: gives the update that brings that tab to the front.
    """

    def __init__(self, generate: GenerateTab, show_generate: Callable[[], Any]) -> None:
        self._generate, self._show_generate = generate, show_generate
        self.button = gr.UploadButton("Open a trace file", elem_id="runs-file", type="filepath")
        self._opened = gr.State(0)

    def connect(self, about: Any) -> None:
        """Let the button work; `about` is the line for what is to say."""
        generate = self._generate
        hidden: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        self.button.upload(
            self._open,
            self.button,
            [generate.viewer, generate.message, about, self._opened, self._show_generate()],
            # With the exports: reading a large file costs memory and a core, too.
            **FEW_AT_ONCE,
            **hidden,
        )
        # Only once a file was good: a run that is going on need not end because another file was no trace.
        self._opened.change(
            lambda: (gr.update(visible=True), gr.update(visible=False)),
            None,
            [generate.run, generate.stop],
            cancels=[generate.running],
            queue=False,
            **hidden,
        )

    def _open(self, path: str | None) -> list[Any]:
        nothing = [gr.skip(), gr.skip()]
        if not path:
            return [*nothing, gr.skip(), gr.skip(), gr.skip()]
        file = Path(path)
        try:
            # One byte more than is allowed is enough to see that it is too much.
            with file.open("rb") as opened:
                runs = runs_in(opened.read(MAX_BYTES + 1), file.name)
            trace = Trace.from_lines(runs[0])
        except TraceError as error:
            return [*nothing, str(error), gr.skip(), gr.skip()]
        finally:
            file.unlink(missing_ok=True)
        said = f"{file.name} was opened."
        if len(runs) > 1:
            said = f"{file.name} holds {len(runs)} runs; the first of them was opened."
        return [value_of(trace), said, gr.skip(), time.time_ns(), gr.update(selected="generate")]
