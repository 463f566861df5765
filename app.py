"""Unmask, on this machine or on Hugging Face Spaces: `python app.py`, then open http://127.0.0.1:7860."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

# Before gradio is imported: no analytics, no version check, no telemetry.
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from playground.engine.engine import Engine, Loader
    from playground.settings import Settings
    from playground.trace import Trace


def _start_engine(settings: Settings, on_end: Callable[[Trace, str], None], load: Loader | None) -> Engine:
    """Import torch and start loading the embedded model in the engine's thread."""
    from playground.engine.engine import Engine

    engine = Engine(settings, on_end=on_end) if load is None else Engine(settings, on_end=on_end, load=load)
    engine.warm("pocket")
    return engine


def main(host: str | None = None, port: int | None = None, load: Loader | None = None) -> None:
    """Serve the page until interrupted; runs under way are then stopped and their texts kept.

    Args:
        host: address to listen on; `GRADIO_SERVER_NAME` or 127.0.0.1 when left out.
        port: `GRADIO_SERVER_PORT` or the first free one from 7860 when left out.
        load: gives the model of a name, in place of the real ones; for measurements.
    """
    from playground.runlog.store import RunStore
    from playground.settings import get_settings

    settings = get_settings()
    print("Unmask is starting; the page's address follows in a few seconds.", flush=True)
    # A torch call gives up the interpreter and has to get it back; by default that takes 5 ms whenever other threads
    # are at work, as imports are now and the page's events later.
    sys.setswitchinterval(1e-4)
    store = RunStore.open(settings.database_url)
    engine = _start_engine(settings, store.save, load)
    from playground.ui.page import build_page, launch_options

    page = build_page(engine, store, settings)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        page.launch(
            server_name=host or os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
            server_port=port,
            prevent_thread_lock=True,
            **launch_options(engine),
        )
        page.block_thread()
    finally:
        engine.close()
        store.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
