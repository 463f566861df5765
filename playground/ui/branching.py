"""What people ask of a run through the viewer: hold it, let it go on, or go on from an edited canvas.

What comes from the browser is checked like any request. Must not know components.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playground.request import GenerationRequest, Limits, RequestError, parse_request

_NOT_KEPT = ("start", "seed", "scored", "parent_run_id", "parent_step", "deadline")
"""Of a run's request, what its branch does not take over."""


def asked_of(detail: object) -> tuple[str, Mapping[str, Any]]:
    """The action and all that came with it.

    Raises:
        RequestError: not something that the viewer sends.
    """
    if not isinstance(detail, Mapping) or not isinstance(detail.get("action"), str):
        raise RequestError("The viewer sent something that cannot be understood; reload the page.")
    return detail["action"], detail


def branch_request(
    detail: Mapping[str, Any], page: Mapping[str, Any], seed: float | None, limits: Limits
) -> GenerationRequest:
    """The request of a run that goes on from an edited canvas.

    Args:
        detail: what the viewer sent: `run`, `step`, `start`, `settings` ("same" or "page") and the old run's `request`.
        page: the page's settings as they stand.
        seed: the seed asked for; None draws one.
        limits: of this deployment.

    Raises:
        RequestError: one sentence.
    """
    old = detail.get("request")
    if not isinstance(old, Mapping):
        raise RequestError("The run to go on from has no settings; run it again.")
    kept = {name: value for name, value in old.items() if name not in _NOT_KEPT}
    values = {**kept, **(page if detail.get("settings") == "page" else {})}
    start = detail.get("start")
    if not isinstance(start, list) or not start:
        raise RequestError("The edited canvas is empty; leave at least one position.")
    return parse_request(
        {
            **values,
            "start": start,
            "seed": seed,
            "parent_run_id": detail.get("run"),
            "parent_step": detail.get("step"),
        },
        limits,
    )
