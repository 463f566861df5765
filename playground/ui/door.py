"""The page's public API call: `generate`, for gradio_client, curl and MCP. Every value is validated like the page's."""

from __future__ import annotations

from typing import Any

import gradio as gr

from playground.engine.engine import Engine
from playground.request import RequestError, parse_request
from playground.trace import Outcome, Result


def add_door(engine: Engine) -> None:
    """Register the call on the Blocks being built."""

    def generate(  # noqa: PLR0917  (gradio_client calls by name)
        prompt: str,
        length: float = 64,
        steps: float = 64,
        block: float = 16,
        schedule: str = "threshold",
        confidence: str = "leftmost",
        threshold: float = 0.7,
        temperature: float = 0.0,
        seed: float | None = None,
        model: str = "pocket",
        request: gr.Request | None = None,
    ) -> dict[str, Any]:
        """Denoise a canvas of `length` tokens and return its text, how it ended, and its figures."""
        try:
            asked = parse_request(
                {
                    "prompt": prompt,
                    "length": length,
                    "steps": steps,
                    "block": block,
                    "schedule": schedule,
                    "confidence": confidence,
                    "threshold": threshold,
                    "temperature": temperature,
                    "seed": seed,
                    "model": model,
                },
                engine.settings.limits,
            )
            run = engine.submit(asked, f"session-{request.session_hash}" if request else "")
        except RequestError as error:
            raise gr.Error(str(error), print_exception=False) from None
        try:
            return _answer(run.id, run.seed, run.wait())
        finally:
            run.cancel()

    gr.api(generate, api_name="generate", concurrency_limit=None)  # type: ignore[attr-defined]


def _answer(run_id: str, seed: int, outcome: Outcome | None) -> dict[str, Any]:
    assert outcome is not None
    if outcome.result is Result.FAILED:
        raise gr.Error(outcome.message, print_exception=False)
    return {
        "text": outcome.text,
        "result": outcome.result.value,
        "message": outcome.message,
        "tokens": outcome.tokens,
        "forwards": outcome.forwards,
        "seconds": outcome.timings.total,
        "seed": seed,
        "run_id": run_id,
    }
