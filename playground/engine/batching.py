"""One worker for one model: it takes canvases from all active runs into one forward (continuous batching).

Runs join and leave between forwards. They wait in order of arrival; a run marked reproducible waits until it is
alone. The worker is the only thread that touches the model. It must not know pages, tables or request bounds.
"""

from __future__ import annotations

import logging
import platform
import threading
import time
from collections import deque
from collections.abc import Callable

import torch

import playground
from playground.denoisers.base import Denoiser, DenoiserError, one_line
from playground.denoisers.loading import describe_device
from playground.engine.denoise import Lane, header_of
from playground.engine.run import Run
from playground.engine.start import check_fit, start_of
from playground.engine.state import ModelState, ModelStatus
from playground.request import RequestError
from playground.sampling.commits import Step
from playground.sampling.sampler import SamplerError
from playground.trace import Header, Outcome, Result, Timings, Trace

log = logging.getLogger(__name__)

MAX_PAUSE = 600.0
"""Seconds after which a paused run ends by itself; its canvas holds memory that others may need."""
PAUSED_TOO_LONG = "The run was paused for ten minutes and has been stopped; the text so far is kept."
SHUT_DOWN = "The app was shut down; the text so far is kept."


class Worker:
    """See the module.

    Args:
        model_id: for messages and headers.
        load: gives the loaded model; called once, on the worker's thread.
        device_lock: held during each forward, so that models on one device take turns.
        max_active: canvases in one forward.
        max_seconds: longest time a run may hold a place.
        max_length: positions of the longest canvas.
        on_end: called once with each ended run's trace and visitor.
    """

    def __init__(
        self,
        model_id: str,
        load: Callable[[], Denoiser],
        *,
        device_lock: threading.Lock,
        max_active: int,
        max_seconds: float,
        max_length: int,
        on_end: Callable[[Trace, str], None],
    ) -> None:
        self.model_id = model_id
        self._load, self._device_lock = load, device_lock
        self._max_active, self._max_seconds, self._on_end = max_active, max_seconds, on_end
        self._max_length = max_length
        self._denoiser: Denoiser | None = None
        self._status = ModelStatus(ModelState.LOADING, 0.0)
        self._created_at = time.monotonic()
        self._waiting: deque[Run] = deque()
        self._starting: Run | None = None
        self._lanes: list[Lane] = []
        self._wake = threading.Condition()
        self._retired = self._stopping = False
        self.loaded = threading.Event()
        self._thread = threading.Thread(target=self._main, name=f"worker-{model_id}", daemon=True)
        self._thread.start()

    # --- for other threads ----------------------------------------------------------------------

    @property
    def status(self) -> ModelStatus:
        """Where the model stands now."""
        if self._status.state is ModelState.LOADING:
            return ModelStatus(ModelState.LOADING, time.monotonic() - self._created_at)
        return self._status

    @property
    def denoiser(self) -> Denoiser | None:
        """The model, once loaded. Only the worker may run it; its spec and tokens are free to read."""
        return self._denoiser

    def submit(self, run: Run) -> bool:
        """Put a run at the end of the queue; False where this worker takes no more."""
        with self._wake:
            if not self._retired:
                self._waiting.append(run)
                self._wake.notify()
            return not self._retired

    def place(self, run: Run) -> int:
        """1 for the next run to start, 0 for one that has started."""
        with self._wake:
            return next((i for i, waiting in enumerate(self._waiting, 1) if waiting is run), 0)

    def waiting(self) -> int:
        """Runs in the queue."""
        with self._wake:
            return len(self._waiting)

    def wake(self) -> None:
        """Look again: a paused run goes on, or is to end."""
        with self._wake:
            self._wake.notify()

    def runs_of(self, visitor: str) -> int:
        """Runs of one visitor, waiting or active."""
        with self._wake:
            return sum(run.visitor == visitor for run in self._runs())

    def retire(self) -> None:
        """Take no more runs; the thread ends when those it has have ended."""
        with self._wake:
            self._retired = True
            self._wake.notify()

    def close(self, timeout: float = 30.0) -> None:
        """Stop all runs, keep their texts, end the thread."""
        with self._wake:
            self._stopping = self._retired = True
            for run in self._runs():
                run.cancel(SHUT_DOWN)
            self._wake.notify()
        self._thread.join(timeout)

    def _runs(self) -> list[Run]:
        starting = [] if self._starting is None else [self._starting]
        return [*self._waiting, *starting, *(lane.run for lane in self._lanes)]

    # --- the thread -----------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            with self._device_lock:
                self._denoiser = self._load()
            self._status = ModelStatus(ModelState.READY, time.monotonic() - self._created_at)
        except DenoiserError as error:
            self._fail_loading(str(error))
        except Exception as error:
            log.exception("Loading %s failed", self.model_id)
            self._fail_loading(f"The model {self.model_id} could not be loaded: {one_line(error)}.")
        self.loaded.set()
        while self._wait_for_work():
            try:
                self._turn()
            except Exception as error:  # a run must never be lost, nor the worker with it
                log.exception("A turn failed")
                for lane in self._lanes:
                    self._fail(lane, error)

    def _fail_loading(self, message: str) -> None:
        self._status = ModelStatus(ModelState.FAILED, time.monotonic() - self._created_at, message)

    def _wait_for_work(self) -> bool:
        with self._wake:
            self._wake.wait_for(self._has_work, timeout=self._until_overdue())
            return bool(self._waiting or self._lanes or not self._retired)

    def _has_work(self) -> bool:
        ending = self._retired and not self._lanes
        return bool(self._waiting or ending or any(_is_due(lane) for lane in self._lanes))

    def _until_overdue(self) -> float | None:
        """Seconds until the first paused run has waited too long; None where none is paused."""
        waits = [MAX_PAUSE - lane.run.paused_seconds for lane in self._lanes if lane.run.paused]
        return max(0.0, min(waits)) if waits else None

    def _turn(self) -> None:
        """Let runs leave and join, then do one forward for all of them."""
        self._drop_cancelled_waiting()
        self._lanes = [lane for lane in self._lanes if not self._leaves(lane)]
        while (run := self._next_run()) is not None:
            self._admit(run)
        # A canvas without masks is finished before its first forward.
        self._lanes = [lane for lane in self._lanes if not self._finished(lane)]
        # A prompt's own forward may have outlasted a deadline or a visitor's patience.
        self._lanes = [lane for lane in self._lanes if not self._leaves(lane)]
        if due := [lane for lane in self._lanes if not lane.run.paused]:
            for lanes in _apart(due):
                with self._device_lock:
                    self._forward(lanes)
            self._lanes = [lane for lane in self._lanes if not self._finished(lane)]

    def _next_run(self) -> Run | None:
        with self._wake:
            # A paused run keeps its canvas, but nobody waits for it.
            active = [lane for lane in self._lanes if not lane.run.paused]
            if not self._waiting or len(active) >= self._max_active:
                return None
            alone = self._waiting[0].request.reproducible or any(lane.run.request.reproducible for lane in active)
            if alone and active:
                return None
            self._starting = self._waiting.popleft()
            return self._starting

    def _drop_cancelled_waiting(self) -> None:
        with self._wake:
            # Each is looked at once: one cancelled between two looks would be neither dropped nor kept.
            dropped = [run for run in self._waiting if run.cancelled.is_set()]
            self._waiting = deque(run for run in self._waiting if run not in dropped)
        for run in dropped:
            self._end_unstarted(run, Result.STOPPED, run.cancel_reason)

    def _admit(self, run: Run) -> None:
        try:
            lane = self._start(run)
        except Exception as error:
            log.exception("Starting a run failed")
            self._end_unstarted(run, Result.FAILED, _sentence(error))
            lane = None
        with self._wake:
            self._starting = None
            if lane is not None:
                self._lanes.append(lane)

    def _start(self, run: Run) -> Lane | None:
        """Do the prompt's work and open the trace; None for a run that ended at once."""
        denoiser = self._denoiser
        if denoiser is None:
            self._end_unstarted(run, Result.FAILED, self._status.message)
            return None
        prompt_ids = denoiser.tokens.encode_prompt(run.request.prompt)
        try:
            start = start_of(run.request, denoiser.spec, denoiser.tokens)
            check_fit(run.request, denoiser.spec, len(prompt_ids), len(start.ids), self._max_length)
        except RequestError as error:
            self._end_unstarted(run, Result.FAILED, str(error))
            return None
        with self._device_lock:
            lane = Lane(run, denoiser, prompt_ids, start)
        header = header_of(
            run,
            denoiser,
            len(prompt_ids),
            length=lane.length,
            blocks=lane.blocks,
            start=lane.given,
            pinned=tuple(sorted(start.pinned)),
            device=describe_device(denoiser.device),
            versions=_versions(),
        )
        run.start(header)
        return lane

    def _forward(self, lanes: list[Lane]) -> None:
        """One forward. Whoever gets no step of it, through another's failure, has a forward of its own at once."""
        steps, seconds, error = self._run_model(lanes)
        for lane, step in zip(lanes, steps, strict=False):
            try:
                lane.publish(step, seconds, len(lanes))
            except Exception as unshown:
                log.exception("A frame could not be made")
                self._fail(lane, unshown)
        if error is None:
            return
        if not isinstance(error, SamplerError):
            log.error("A forward of %d canvases failed", len(lanes), exc_info=error)
        if len(lanes) == 1:
            self._fail(lanes[0], error)
            return
        for lane in lanes[len(steps) :]:
            self._forward([lane])

    def _run_model(self, lanes: list[Lane]) -> tuple[list[Step], float, Exception | None]:
        """Each lane's step, the seconds the model itself took (sampling left out), and what went wrong.

        After a failure the steps of the lanes before it stand: their canvases have moved on.
        """
        denoiser = self._denoiser
        assert denoiser is not None
        steps: list[Step] = []
        seconds = 0.0
        started = time.perf_counter()
        try:
            logits_of = iter(denoiser.logits([lane.job() for lane in lanes]))
            for lane in lanes:
                logits = next(logits_of)
                if denoiser.device.type == "cuda":
                    torch.cuda.synchronize(denoiser.device)
                seconds += time.perf_counter() - started
                steps.append(lane.take(logits))
                started = time.perf_counter()
        except Exception as error:
            return steps, seconds, error
        return steps, seconds, None

    # --- how runs end ---------------------------------------------------------------------------

    def _leaves(self, lane: Lane) -> bool:
        if self._stopping:
            lane.run.cancel(SHUT_DOWN)
        if lane.run.cancelled.is_set():
            self._end(lane, Result.STOPPED, lane.run.cancel_reason)
        elif lane.overdue:
            self._end(
                lane,
                Result.DEADLINE,
                f"The deadline of {lane.run.request.deadline:g} s passed; the text so far is kept.",
            )
        elif lane.run.paused_seconds > MAX_PAUSE and lane.run.paused:
            self._end(lane, Result.STOPPED, PAUSED_TOO_LONG)
        elif time.monotonic() - lane.started_at - lane.run.paused_seconds > self._max_seconds:
            self._end(
                lane,
                Result.DEADLINE,
                f"This app stops runs after {self._max_seconds:g} s; the text so far is kept. Try fewer steps.",
            )
        else:
            return False
        return True

    def _finished(self, lane: Lane) -> bool:
        if lane.done:
            self._end(lane, Result.FINISHED, "")
        return lane.done

    def _fail(self, lane: Lane, error: Exception) -> None:
        """End a run that something went wrong with; its place is free."""
        self._lanes = [other for other in self._lanes if other is not lane]
        if not lane.run.done:
            self._end(lane, Result.FAILED, str(error) if isinstance(error, SamplerError) else _sentence(error))

    def _end(self, lane: Lane, result: Result, message: str) -> None:
        try:
            lane.end(result, message)
        except Exception as error:
            log.exception("A text could not be made")
            lane.end(Result.FAILED, _sentence(error), textless=True)
        self._report(lane.run)

    def _end_unstarted(self, run: Run, result: Result, message: str) -> None:
        """End a run that never had a canvas; it is logged like any other."""
        waited = round(time.monotonic() - run.submitted_at, 6)
        run.start(
            Header(
                run_id=run.id,
                created=run.created,
                model=self.model_id,
                model_name=self.model_id,
                request=run.request.model_dump(mode="json"),
                seed=run.seed,
                prompt=run.request.prompt,
                prompt_tokens=0,
                length=run.request.length,
                blocks=(),
                stop_ids=(),
                device="",
                dtype="",
                versions=_versions(),
            )
        )
        run.append(Outcome(result, "", message, 0, 0, Timings(queue=waited, total=waited)))
        self._report(run)

    def _report(self, run: Run) -> None:
        assert run.trace is not None
        if not run.logged:
            return
        try:
            self._on_end(run.trace, run.visitor)
        except Exception:
            log.exception("A run could not be handed to the log")


def _is_due(lane: Lane) -> bool:
    return not lane.run.paused or lane.run.cancelled.is_set()


def _apart(lanes: list[Lane]) -> list[list[Lane]]:
    """Lanes for each forward: a reproducible one by itself, which after a pause may find others at work."""
    alone = [[lane] for lane in lanes if lane.run.request.reproducible]
    others = [lane for lane in lanes if not lane.run.request.reproducible]
    return [*alone, others] if others else alone


def _versions() -> dict[str, str]:
    return {
        "unmask": playground.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _sentence(error: Exception) -> str:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return "The device ran out of memory; choose a shorter canvas, or try when fewer runs are active."
    return f"The model failed ({type(error).__name__}: {one_line(error)}); try again, and report it if it stays."
