"""Unmask: a playground for text diffusion.

`from playground import DenoisingPipeline` is the Python door; importing the package alone loads neither torch nor
gradio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playground.engine.pipeline import DenoisingPipeline

__all__ = ["DenoisingPipeline", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "DenoisingPipeline":
        from playground.engine.pipeline import DenoisingPipeline

        return DenoisingPipeline
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
