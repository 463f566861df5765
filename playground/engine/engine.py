"""The one door to generation: submit a request, get a run.

The engine checks a request against this deployment's limits, draws a seed where none is given, and hands the run
to its model's worker. Models load in the background. It must not know pages or tables; ended traces go to
`on_end`.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from playground.denoisers.base import Denoiser
from playground.denoisers.catalogue import CATALOGUE
from playground.denoisers.loading import load_denoiser
from playground.engine.batching import Worker
from playground.engine.recent import RecentRuns
from playground.engine.run import Run
from playground.engine.state import ModelState, ModelStatus
from playground.request import MAX_SEED, GenerationRequest, RequestError, check_limits
from playground.settings import Settings, get_settings
from playground.trace import Trace

Loader = Callable[[str, Settings], Denoiser]


class QueueFullError(RequestError):
    """No place is free; the text says so and what to do."""


def _nowhere(trace: Trace, visitor: str) -> None:
    del trace, visitor


class Engine:
    """See the module.

    Args:
        settings: limits and device; the process's own when left out.
        on_end: called on a worker's thread with each ended run's trace and its visitor.
        load: gives the model of a name; tests may pass their own.
        models: names that can be asked for.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        on_end: Callable[[Trace, str], None] = _nowhere,
        load: Loader = load_denoiser,
        models: frozenset[str] = frozenset(CATALOGUE),
    ) -> None:
        self.settings = settings or get_settings()
        self.models = models
        self._on_end, self._load = on_end, load
        self._workers: dict[str, Worker] = {}
        self._recent = RecentRuns()
        self._lock = threading.Lock()
        self._submitting = threading.Lock()
        self._device_lock = threading.Lock()
        self._closed = False

    def warm(self, model: str) -> ModelStatus:
        """Start loading `model` in the background (again, if it failed before) and say where it stands.

        Raises:
            RequestError: no such model.
        """
        return self._worker(model).status

    def status(self, model: str) -> ModelStatus:
        """Where `model` stands; starts loading one that nobody has asked for yet, but never tries again.

        Raises:
            RequestError: no such model.
        """
        with self._lock:
            worker = self._workers.get(model)
        return worker.status if worker is not None else self.warm(model)

    def ready(self, model: str, timeout: float | None = None) -> ModelStatus:
        """Load `model` and wait until it is ready or has failed."""
        worker = self._worker(model)
        worker.loaded.wait(timeout)
        return worker.status

    def wait(self, model: str, timeout: float) -> None:
        """Wait until `model` is ready or has failed, at most `timeout` seconds; starts nothing."""
        with self._lock:
            worker = self._workers.get(model)
        if worker is not None:
            worker.loaded.wait(timeout)

    def denoiser(self, model: str) -> Denoiser | None:
        """The loaded model, for its spec and tokens; None while it loads."""
        return self._worker(model).denoiser

    def check(self, request: GenerationRequest) -> None:
        """Refuse what this deployment does not run.

        Raises:
            RequestError: one sentence with the limit.
        """
        if request.model not in self.models:
            known = ", ".join(sorted(self.models))
            raise RequestError(f"There is no model called {request.model[:60]!r}; choose from: {known}.")
        check_limits(request, self.settings.limits)

    def submit(self, request: GenerationRequest, visitor: str = "", *, logged: bool = True) -> Run:
        """Queue a run.

        Args:
            request: what is asked.
            visitor: whose run it is.
            logged: False for a try among many, which is handed to the log only if it is kept (`keep`).

        Raises:
            RequestError: over a limit, unknown model, or (`QueueFullError`) no place in the queue.
        """
        self.check(request)
        seed = secrets.randbelow(MAX_SEED + 1) if request.seed is None else request.seed
        # One at a time, or two runs could take the same last place.
        with self._submitting:
            while True:
                worker = self._worker(request.model)
                if worker.waiting() >= max(1, self.settings.max_queue):
                    raise QueueFullError("The queue is full; try again in a minute.")
                if visitor and worker.runs_of(visitor) >= self.settings.max_queue_per_visitor:
                    raise QueueFullError(
                        f"You already have {self.settings.max_queue_per_visitor} runs waiting or active; "
                        "stop one or wait for it to end."
                    )
                run = Run(request, seed=seed, visitor=visitor, place=worker.place, wake=worker.wake, logged=logged)
                if worker.submit(run):
                    self._recent.add(run)
                    return run

    def find(self, run_id: str) -> Run | None:
        """The run of this id: one that waits, goes on, or has ended not long ago."""
        return self._recent.get(run_id)

    def keep(self, run: Run) -> None:
        """Hand a try that has ended to the log after all; once, however often it is kept."""
        if not run.logged and run.trace is not None and run.trace.outcome is not None:
            run.logged = True
            self._on_end(run.trace, run.visitor)

    def close(self) -> None:
        """Stop all runs, keeping their texts, and free the models."""
        with self._lock:
            self._closed = True
            workers = list(self._workers.values())
            self._workers = {}
        for worker in workers:
            worker.close()

    def _worker(self, model: str) -> Worker:
        if model not in self.models:
            raise RequestError(
                f"There is no model called {model[:60]!r}; choose from: {', '.join(sorted(self.models))}."
            )
        with self._lock:
            if self._closed:
                raise RequestError("The app is shutting down; start it again.")
            worker = self._workers.get(model)
            if worker is not None and worker.status.state is ModelState.FAILED:
                # Its files may have been put right since; a failed load is never final.
                worker.retire()
                worker = None
            if worker is None:
                worker = self._workers[model] = Worker(
                    model,
                    lambda: self._load(model, self.settings),
                    device_lock=self._device_lock,
                    max_active=self.settings.max_active,
                    max_seconds=self.settings.max_seconds,
                    max_length=self.settings.limits["length"],
                    on_end=self._on_end,
                )
            return worker
