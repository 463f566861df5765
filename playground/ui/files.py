"""Files on their way to a browser: written into folders nobody can guess, and taken away again once they are old."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

KEPT_SECONDS = 600.0
"""Gradio takes a copy as it answers; ours is only needed until then."""


class Outgoing:
    """Folders with one file each."""

    def __init__(self, kept_seconds: float = KEPT_SECONDS) -> None:
        self._kept_seconds = kept_seconds
        self._folders: deque[tuple[float, Path]] = deque()
        self._lock = threading.Lock()
        atexit.register(self._sweep, 0.0)

    def write(self, name: str, parts: Iterable[bytes]) -> str:
        """Write parts into a file of this name; gives its path."""
        self._sweep(self._kept_seconds)
        folder = Path(tempfile.mkdtemp(prefix="unmask-"))
        with self._lock:
            self._folders.append((time.monotonic(), folder))
        path = folder / name
        with path.open("wb") as file:
            file.writelines(parts)
        return str(path)

    def _sweep(self, kept_seconds: float) -> None:
        """Take away what is older than that."""
        while True:
            with self._lock:
                if not self._folders or self._folders[0][0] > time.monotonic() - kept_seconds:
                    return
                _, folder = self._folders.popleft()
            shutil.rmtree(folder, ignore_errors=True)


outgoing = Outgoing()
"""Those of this process."""
