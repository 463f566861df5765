"""Makes components outside a running app."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import gradio as gr

T = TypeVar("T")


def built(make: Callable[[], T]) -> T:
    """What `make` gives inside a Blocks; in a running event loop, since Gradio would open loops and leave them so."""

    async def build() -> T:
        with gr.Blocks():
            return make()

    return asyncio.run(build())
