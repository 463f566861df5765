"""Runs that can still be watched by their id: those going on, and the last ones that ended.

Bounded by what their frames hold, since a run of a thousand positions in a thousand steps holds a million guesses. Must
not know workers or pages.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from playground.engine.run import Run

MOST_RUNS = 64
MOST_NOTES = 500_000
"""Changes and guesses that ended runs may hold together; with all their candidates some hundred megabytes."""


class RecentRuns:
    """See the module. The newest run is always kept; those going on are too, whatever they hold.

    Args:
        most_runs: of those that ended.
        most_notes: changes and guesses that those may hold together.
    """

    def __init__(self, most_runs: int = MOST_RUNS, most_notes: int = MOST_NOTES) -> None:
        self._most_runs, self._most_notes = most_runs, most_notes
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, run: Run) -> None:
        """Keep `run`, and let go of what is too old for it."""
        with self._lock:
            self._runs[run.id] = run
            ended, notes = 0, 0
            for known in reversed(list(self._runs.values())):
                if not known.done:
                    continue
                ended, notes = ended + 1, notes + _notes(known)
                if ended > self._most_runs or notes > self._most_notes:
                    del self._runs[known.id]

    def get(self, run_id: str) -> Run | None:
        """The run of this id, while it is kept."""
        with self._lock:
            return self._runs.get(run_id)


def _notes(run: Run) -> int:
    return sum(len(frame.changes) + len(frame.guesses) for frame in run.trace.frames) if run.trace else 0
