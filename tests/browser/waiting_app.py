"""The app, but its model loads only once a file is there: a test decides how long loading takes.

Run as a script, with the file's path in UNMASK_TEST_GATE.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import app  # first, for what it sets before gradio and torch are imported
from playground.denoisers import loading
from playground.denoisers.pocket import PocketDenoiser


def load_after_gate(*arguments: Any) -> PocketDenoiser:
    """The model, as soon as the gate is there."""
    gate = Path(os.environ["UNMASK_TEST_GATE"])
    while not gate.exists():
        time.sleep(0.1)
    return PocketDenoiser(*arguments)


if __name__ == "__main__":
    loading.PocketDenoiser = load_after_gate  # type: ignore[assignment,misc]
    app.main()
