"""The whole page: heading, tabs, theme, scripts, and the routes beside it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from playground.api.events import events_route
from playground.api.health import health_route
from playground.engine.engine import Engine
from playground.engine.state import ModelState
from playground.export.reading import MAX_BYTES
from playground.labs import examples
from playground.runlog.store import RunStore
from playground.settings import ROOT, Settings
from playground.ui.components import STATIC_URL, text_line
from playground.ui.door import add_door
from playground.ui.generate import GenerateTab
from playground.ui.infill import InfillTab
from playground.ui.links import LinkOpener
from playground.ui.runs import RunsTab
from playground.ui.structured import StructuredTab
from playground.ui.theme import THEME

STATIC = ROOT / "static"
STYLES = ("player.css", "page.css", "share.css")
FILES_KEPT = 3600
"""Seconds after which what was uploaded or exported is taken from Gradio's folder, looked after as often."""
_HEADING = """
<header class="unmask-heading">
  <h1>Unmask</h1>
  <p>Watch a language model write all positions at once, from masks to text.</p>
  <button type="button" class="unmask-theme" id="theme" aria-label="Switch between light and dark">◐</button>
</header>
"""


def build_page(engine: Engine, store: RunStore, settings: Settings) -> gr.Blocks:
    """The page on an engine and a run log; `launch_options` goes with it."""
    page: gr.Blocks
    with gr.Blocks(
        title="Unmask: watch text diffusion",
        analytics_enabled=False,
        fill_width=True,
        delete_cache=(FILES_KEPT, FILES_KEPT),
    ) as page:
        # Key and secret are fixed, or a restart would make every visitor a stranger to their own runs.
        visitor = gr.BrowserState("", storage_key="unmask-visitor", secret="unmask-visitor-1")
        gr.HTML(_HEADING, apply_default_css=False, elem_id="heading")
        model_line = text_line(elem_id="model-line")
        log_line = text_line(elem_id="log-line")
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab("Generate", id="generate"):
                generate = GenerateTab(engine, settings, visitor, examples.load())
            with gr.Tab("Infill", id="infill"):
                InfillTab(engine, settings, visitor)
            with gr.Tab("JSON", id="json"):
                StructuredTab(engine, settings, visitor)
            with gr.Tab("Runs", id="runs") as runs_tab:
                runs = RunsTab(store, settings, visitor, generate, lambda: tabs)
        add_door(engine)
        runs_tab.select(**runs.refresh_args)
        quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        page.load(_visitor_of, visitor, visitor, queue=False, **quiet)
        page.load(_news_of(engine), None, model_line, concurrency_limit=None, **quiet)
        page.load(lambda: store.problem or "", None, log_line, queue=False, **quiet)
        # An empty number starts as 0 in the browser, which would look like a seed that somebody chose.
        cleared = page.load(None, None, generate.seed.seed, js="() => null", **quiet)
        LinkOpener(generate, store, settings, cleared)
    page.queue(max_size=settings.max_queue + settings.max_active + 64, default_concurrency_limit=16)
    return page


def launch_options(engine: Engine) -> dict[str, Any]:
    """What `Blocks.launch` needs beside host and port."""
    return {
        "theme": THEME,
        "head": _head(),
        "ssr_mode": False,
        "max_file_size": MAX_BYTES,
        "run_history": False,
        "footer_links": ["api", "settings"],
        "show_error": True,
        "app_kwargs": {"routes": routes(engine)},
    }


def routes(engine: Engine) -> list[BaseRoute]:
    """Routes on the page's own port: static files, the lines of runs, and health."""
    return [Mount(f"/{STATIC_URL}", _Files(directory=STATIC)), events_route(engine), health_route(engine)]


class _Files(StaticFiles):
    """Files that browsers ask after each time, so that an update of the app is one for its visitors too."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def _head() -> str:
    """Links are relative, so that they hold behind a path prefix."""
    styles = "".join(f'<link rel="stylesheet" href="{STATIC_URL}/{name}">' for name in STYLES)
    return f'{styles}<script type="module" src="{STATIC_URL}/page.js"></script>'


def _visitor_of(visitor: str | None) -> str:
    return visitor or secrets.token_urlsafe(24)


def _news_of(engine: Engine, model: str = "pocket") -> Callable[[], Iterator[str]]:
    """An event that says how a model's loading goes; Gradio streams only functions it sees are generators."""

    def news() -> Iterator[str]:
        status = engine.status(model)
        while status.state is ModelState.LOADING:
            yield f"Loading the model ({status.seconds:.0f} s). Recorded runs play meanwhile."
            engine.wait(model, timeout=1.0)
            status = engine.status(model)
        yield status.message if status.state is ModelState.FAILED else ""

    return news


def static_files() -> list[Path]:
    """Every file the page may fetch from static/."""
    return sorted(path for path in STATIC.iterdir() if path.is_file())
