"""The Runs tab: what was run, found again, opened again, taken away. Knows the run log's rows, not its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from playground import charts
from playground.runlog.problems import RunLogError
from playground.runlog.rows import RunFilter, RunRow, Sort
from playground.runlog.store import RunStore
from playground.settings import Settings
from playground.trace import Result, Trace, TraceError
from playground.ui.branches import Branches
from playground.ui.components import text_line
from playground.ui.export_row import PRESS, ExportRow, Source
from playground.ui.files import outgoing
from playground.ui.generate import GenerateTab, value_of
from playground.ui.opening import OpenFile
from playground.ui.share import Linking, link_to_run

HEADINGS = ["When (UTC)", "Prompt", "Result", "Length", "Forwards", "Seconds", "Tokens/s", "Schedule", "Text"]
WIDTHS: list[str | int] = ["150px", "270px", "90px", "75px", "90px", "85px", "90px", "120px", "320px"]
PAGE = 200
"""Runs shown and drawn at once; search and filters reach all of them."""
SORTS = [
    ("Newest first", (Sort.CREATED, True)),
    ("Oldest first", (Sort.CREATED, False)),
    ("Slowest first", (Sort.TOTAL_SECONDS, True)),
    ("Fastest first", (Sort.TOTAL_SECONDS, False)),
    ("Most forwards first", (Sort.FORWARDS, True)),
    ("Longest canvas first", (Sort.LENGTH, True)),
    ("Result", (Sort.RESULT, False)),
]
NOTHING = "No run is chosen. Click a row, or move to it with the arrow keys."


class RunsTab:
    """Builds the tab; create inside a Blocks context.

    Args:
        store: the run log.
        settings: whose runs are shown.
        visitor: component that holds whose page this is.
        generate: the tab whose viewer and controls a run is opened in.
        show_generate: gives the update that brings that tab to the front.
    """

    def __init__(
        self,
        store: RunStore,
        settings: Settings,
        visitor: gr.BrowserState,
        generate: GenerateTab,
        show_generate: Callable[[], Any],
    ) -> None:
        self._store, self._settings = store, settings
        self._generate, self._show_generate = generate, show_generate
        self._build(visitor)
        self._connect(visitor)

    def _build(self, visitor: gr.BrowserState) -> None:
        self.problem = text_line(elem_id="runlog-problem")
        with gr.Row(elem_id="runs-filters", equal_height=True):
            self.search = gr.Textbox(
                label="Search", placeholder="words in prompt or text", elem_id="runs-search", scale=3, min_width=180
            )
            self.result = gr.Dropdown(
                [("Any", ""), *[(r.value.capitalize(), r.value) for r in Result]],
                value="",
                label="Result",
                elem_id="runs-result",
                min_width=110,
            )
            self.model = gr.Dropdown([("Any", "")], value="", label="Model", elem_id="runs-model", min_width=110)
            self.sort = gr.Dropdown(
                [title for title, _ in SORTS], value=SORTS[0][0], label="Sort", elem_id="runs-sort", min_width=140
            )
            self.refresh = gr.Button("Refresh", elem_id="runs-refresh", scale=0, min_width=96)
        self.ids = gr.State([])
        self.chosen = gr.State("")
        self.count = text_line(elem_id="runs-count")
        self.table = gr.Dataframe(
            headers=HEADINGS,
            column_widths=WIDTHS,
            type="array",
            interactive=False,
            max_height=380,
            elem_id="runs-table",
            show_label=False,
            buttons=[],
        )
        self.about = text_line(NOTHING, elem_id="runs-about")
        with gr.Row(elem_id="runs-actions"):
            self.open = gr.Button("Open in the viewer", variant="primary", elem_id="runs-open", interactive=False)
            self.restore = gr.Button("Restore its settings", elem_id="runs-restore", interactive=False)
            self.delete = gr.Button("Delete", elem_id="runs-delete", interactive=False)
            self.confirm = gr.Button("Delete for good", variant="stop", elem_id="runs-confirm", visible=False)
            self.csv = gr.Button("All as CSV", elem_id="runs-csv")
            self.jsonl = gr.Button("All as JSON lines", elem_id="runs-jsonl")
            # A download button fetches the file it already has; these get theirs when asked and are pressed by script.
            self.csv_file = gr.DownloadButton(visible="hidden", elem_id="runs-csv-file")
            self.jsonl_file = gr.DownloadButton(visible="hidden", elem_id="runs-jsonl-file")
            self.file = OpenFile(self._generate, self._show_generate)
        with gr.Column(visible=False, elem_id="runs-one") as self.one:
            inputs = [self.chosen, visitor]
            self.exports = ExportRow(Source("runs-export", self._find, inputs), Linking(link_to_run, inputs))
        self.branches = Branches(self._store, self._whose)
        gr.HTML('<p class="unmask-caption">Time against forwards</p>', apply_default_css=False)
        self.plot = gr.Plot(show_label=False, elem_id="runs-plot")

    def _connect(self, visitor: gr.BrowserState) -> None:
        hidden: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        filters = [visitor, self.search, self.result, self.model, self.sort]
        listing = [self.table, self.ids, self.chosen, self.count, self.about, self.problem, self.model, self.plot]
        buttons = [self.open, self.restore, self.delete, self.confirm]
        self.refresh_args: dict[str, Any] = {
            "fn": self._list,
            "inputs": filters,
            "outputs": [*listing, *buttons],
            **hidden,
        }
        for event in (self.refresh.click, self.search.submit, self.result.input, self.model.input, self.sort.input):
            event(**self.refresh_args)
        # Not "input", which Gradio does not fire for pasted or deleted text.
        self.search.change(**{**self.refresh_args, "trigger_mode": "always_last"})
        self.table.select(self._select, [self.ids, visitor], [self.chosen, self.about, *buttons], **hidden)
        self.chosen.change(self.branches.of, [self.chosen, visitor], self.branches.outputs, **hidden)
        self.branches.connect(visitor)
        generate = self._generate
        self.open.click(
            self._open,
            [self.chosen, visitor],
            [generate.viewer, generate.run, generate.stop, self.about, self._show_generate()],
            cancels=[generate.running, generate.branching],
            **hidden,
        )
        self.restore.click(
            self._restore,
            [self.chosen, visitor],
            [*generate.request_components, self.about, self._show_generate()],
            **hidden,
        )
        self.chosen.change(lambda chosen: gr.update(visible=bool(chosen)), self.chosen, self.one, queue=False, **hidden)
        self.file.connect(self.about)
        self.delete.click(lambda: gr.update(visible=True), None, self.confirm, queue=False, **hidden)
        self.confirm.click(self._delete, [self.chosen, visitor], self.about, **hidden).then(**self.refresh_args)
        for button, write, file, name in (
            (self.csv, self._csv, self.csv_file, "runs-csv-file"),
            (self.jsonl, self._jsonl, self.jsonl_file, "runs-jsonl-file"),
        ):
            button.click(write, filters, file, **hidden).success(None, None, None, js=PRESS % name)

    # --- listing --------------------------------------------------------------------------------

    def _filter(self, visitor: str | None, search: str, result: str, model: str, sort: str) -> RunFilter:
        column, descending = dict(SORTS).get(sort, SORTS[0][1])
        return RunFilter(
            visitor=self._whose(visitor),
            search=search or "",
            result=result or "",
            model=model or "",
            sort=column,
            descending=descending,
            limit=PAGE,
        )

    def _whose(self, visitor: str | None) -> str | None:
        """The visitor whose runs may be seen; None means everyone's."""
        # A page without an identity sees nothing rather than everything.
        return None if self._settings.runs == "all" else visitor or "nobody"

    def _list(self, visitor: str | None, search: str, result: str, model: str, sort: str) -> list[Any]:
        self._store.flush(2.0)
        wanted = self._filter(visitor, search, result, model, sort)
        try:
            rows = self._store.list_runs(wanted)
            total = self._store.count(wanted)
            models = self._store.models(wanted.visitor)
        except RunLogError as error:
            return [[], [], "", "", NOTHING, str(error), gr.skip(), gr.skip(), *self._actions(chosen=False)]
        shown = f"{total:,} runs" if total != 1 else "1 run"
        if total > len(rows):
            shown += f"; the first {len(rows)} are shown"
        return [
            [cells(row) for row in rows],
            [row.id for row in rows],
            "",
            f"{shown}.",
            NOTHING,
            self._store.problem or "",
            gr.update(choices=[("Any", ""), *[(name, name) for name in models]]),
            charts.time_against_steps(rows),
            *self._actions(chosen=False),
        ]

    @staticmethod
    def _actions(*, chosen: bool) -> list[Any]:
        """Open, restore and delete work on a chosen run; the second delete button hides again."""
        return [gr.update(interactive=chosen)] * 3 + [gr.update(visible=False)]

    def _select(self, ids: list[str], visitor: str | None, event: gr.SelectData) -> list[Any]:
        row = event.index[0] if isinstance(event.index, list | tuple) else event.index
        if not isinstance(row, int) or not 0 <= row < len(ids):
            return ["", NOTHING, *self._actions(chosen=False)]
        try:
            trace = self._store.load_trace(ids[row], self._whose(visitor))
        except (RunLogError, TraceError) as error:
            return ["", str(error), *self._actions(chosen=False)]
        if trace is None:
            return ["", "This run is no longer in the log; press Refresh.", *self._actions(chosen=False)]
        header, outcome = trace.header, trace.outcome
        said = f"Chosen: “{header.prompt[:80]}”, seed {header.seed}, {header.device or 'never started'}."
        if outcome is not None and outcome.message:
            said += f" {outcome.message}"
        return [ids[row], said, *self._actions(chosen=True)]

    # --- one run --------------------------------------------------------------------------------

    def _open(self, run_id: str, visitor: str | None) -> list[Any]:
        trace, problem = self._load(run_id, visitor)
        if trace is None:
            return [gr.skip(), gr.skip(), gr.skip(), problem, gr.skip()]
        return [
            value_of(trace),
            gr.update(visible=True),
            gr.update(visible=False),
            gr.skip(),
            gr.update(selected="generate"),
        ]

    def _restore(self, run_id: str, visitor: str | None) -> list[Any]:
        trace, problem = self._load(run_id, visitor)
        if trace is None:
            return [*[gr.skip()] * len(self._generate.request_components), problem, gr.skip()]
        request = {**trace.header.request, "seed": trace.header.seed}
        return [*self._generate.restore(request), gr.skip(), gr.update(selected="generate")]

    def _load(self, run_id: str, visitor: str | None) -> tuple[Trace | None, str]:
        if not run_id:
            return None, NOTHING
        try:
            trace = self._store.load_trace(run_id, self._whose(visitor))
        except (RunLogError, TraceError) as error:
            return None, str(error)
        return trace, "" if trace else "This run is no longer in the log; press Refresh."

    def _find(self, run_id: str, visitor: str | None) -> Trace:
        trace, problem = self._load(run_id, visitor)
        if trace is None:
            raise TraceError(problem)
        return trace

    def _delete(self, run_id: str, visitor: str | None) -> str:
        if not run_id:
            return NOTHING
        try:
            gone = self._store.delete([run_id], self._whose(visitor))
        except RunLogError as error:
            return str(error)
        return "The run was deleted." if gone else "This run was already gone."

    # --- exports --------------------------------------------------------------------------------

    def _csv(self, *filters: Any) -> str:
        return self._export("unmask-runs.csv", self._store.export_csv, filters)

    def _jsonl(self, *filters: Any) -> str:
        return self._export("unmask-runs.jsonl", self._store.export_jsonl, filters)

    def _export(self, name: str, write: Callable[[RunFilter], Iterator[str]], filters: tuple[Any, ...]) -> str:
        self._store.flush(2.0)
        try:
            return outgoing.write(name, (part.encode() for part in write(self._filter(*filters))))
        except RunLogError as error:
            raise gr.Error(str(error), print_exception=False) from None


def cells(row: RunRow) -> list[Any]:
    """A row of the table."""
    speed = row.tokens / row.model_seconds if row.model_seconds else 0
    return [
        f"{row.created:%Y-%m-%d %H:%M}",
        _short(row.prompt, 60),
        row.result,
        row.length,
        row.forwards,
        round(row.total_seconds, 2),
        round(speed, 1),
        row.schedule or row.mode,
        _short(row.text, 80),
    ]


def _short(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
