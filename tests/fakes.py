"""A denoiser small enough to reason about, and a gate that lets its forwards through one at a time.

Its logits are a pure function of prompt, canvas and position, and favour the letters of the prompt: so a text says
whose run it is, and a run in company can be compared with the same run alone.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import Tensor

from playground.denoisers.base import DenoiserSpec, Job, TokenText
from playground.engine.engine import Engine
from playground.request import GenerationRequest
from playground.settings import Settings
from playground.trace import Trace

MASK, STOP, HALF_FIRST, HALF_SECOND, SPACE = range(5)
VOCABULARY = [b"<mask>", b"<stop>", b"\xc3", b"\xa9", b" ", *(bytes([c]) for c in b"abcdefghijklmnopqrstuvwxyz")]
PATIENCE = 20.0
"""Seconds after which a wait in a test has failed; nothing here should come near it."""


def id_of(letter: str) -> int:
    """The token of a letter, or of a space for anything else."""
    return VOCABULARY.index(letter.encode()) if letter.encode() in VOCABULARY else SPACE


class FakeTokens:
    """One token a letter; two tokens are the halves of é."""

    def encode_prompt(self, prompt: str) -> list[int]:
        """Its letters."""
        return [id_of(letter) for letter in prompt]

    def encode(self, text: str) -> list[int]:
        """Its letters, no template."""
        return [id_of(letter) for letter in text]

    def token(self, token_id: int) -> TokenText:
        """One token, as the real ones give it."""
        raw = VOCABULARY[token_id]
        try:
            return TokenText(raw.decode())
        except UnicodeDecodeError:
            return TokenText("", raw.hex())

    def decode(self, token_ids: Sequence[int]) -> str:
        """Bytes joined, specials left out."""
        return b"".join(VOCABULARY[i] for i in token_ids if i not in (MASK, STOP)).decode("utf-8", "ignore")


class Gate:
    """Holds every forward until the test lets it through; give it as `on_forward`."""

    def __init__(self) -> None:
        self._arrived, self._allowed = threading.Semaphore(0), threading.Semaphore(0)
        self._opened = threading.Event()

    def __call__(self, prompts: Sequence[str]) -> None:
        """The denoiser's side: say that a forward has begun, wait until it may go on."""
        del prompts
        self._arrived.release()
        if not self._opened.is_set() and not self._allowed.acquire(timeout=PATIENCE):
            raise RuntimeError("The test never let this forward through.")

    def wait(self) -> None:
        """Wait until one more forward has begun (and is held)."""
        assert self._arrived.acquire(timeout=PATIENCE), "no forward began"

    def let(self, forwards: int = 1) -> None:
        """Let `forwards` held forwards through, waiting for the one after each to begin."""
        for _ in range(forwards):
            self._allowed.release()
            self.wait()

    def release(self) -> None:
        """Let the held forward through, and do not wait for another."""
        self._allowed.release()

    def open(self) -> None:
        """Hold nothing from now on."""
        self._opened.set()
        self._allowed.release()


@dataclass(slots=True)
class FakeContext:
    """Whose run it is."""

    prompt: str
    length: int


def _nothing(*_: object) -> None:
    return None


class FakeDenoiser:
    """See the module.

    Args:
        on_forward: called as a forward begins with the prompts of its canvases; may wait or raise.
        on_prepare: called with the prompt of a run that starts; may wait or raise.
        on_logits: called with a canvas's prompt and its logits just before they are given; may spoil or raise.
        stop_from: from this position on, the model is sure that the text ends.
        context_limit: tokens of prompt and canvas.

    Attributes:
        forwards: prompts of the canvases of each forward so far.
    """

    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(
        self,
        *,
        on_forward: Callable[[Sequence[str]], object] = _nothing,
        on_prepare: Callable[[str], object] = _nothing,
        on_logits: Callable[[str, Tensor], object] = _nothing,
        stop_from: int | None = None,
        context_limit: int = 400,
    ) -> None:
        self._on_forward, self._on_prepare, self._on_logits = on_forward, on_prepare, on_logits
        self._stop_from = stop_from
        self._busy = threading.Lock()
        self.forwards: list[list[str]] = []
        self.tokens = FakeTokens()
        self.spec = DenoiserSpec(
            model_id="pocket",
            name="Fake",
            mask_id=MASK,
            stop_ids=(STOP,),
            vocabulary=len(VOCABULARY),
            context_limit=context_limit,
            attention="none",
            licence="none",
        )

    def prepare(self, prompt_ids: Sequence[int], length: int) -> FakeContext:
        """Remember the prompt."""
        prompt = self.tokens.decode(prompt_ids)
        self._on_prepare(prompt)
        return FakeContext(prompt, length)

    def logits(self, jobs: Sequence[Job]) -> Iterator[Tensor]:
        """One forward; complains when two threads are in it at once."""
        assert self._busy.acquire(blocking=False), "two threads are in the model at once"
        try:
            prompts = [job.context.prompt for job in jobs]
            self.forwards.append(prompts)
            self._on_forward(prompts)
            rows = [self._rows(job) for job in jobs]
        finally:
            self._busy.release()
        for prompt, logits in zip(prompts, rows, strict=True):
            self._on_logits(prompt, logits)
            yield logits

    def _rows(self, job: Job) -> Tensor:
        assert job.wanted, "a canvas without masks needs no forward"
        assert all(job.canvas[at] == MASK for at in job.wanted)
        assert len(job.canvas) == job.context.length
        favoured = {id_of(letter) for letter in job.context.prompt}
        rows = []
        for at in job.wanted:
            state = zlib.crc32(repr((job.context.prompt, list(job.canvas), at)).encode())
            row = 2 * torch.randn(len(VOCABULARY), generator=torch.Generator().manual_seed(state))
            for token in favoured:
                row[token] += 30
            row[STOP] = 100 if self._stop_from is not None and at >= self._stop_from else -100
            row[MASK] = 200
            rows.append(row)
        return torch.stack(rows)


class Log:
    """An `on_end` that keeps what it is given and can be waited for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ended: list[tuple[Trace, str]] = []
        self._error = error
        self._changed = threading.Condition()

    def __call__(self, trace: Trace, visitor: str) -> None:
        with self._changed:
            self.ended.append((trace, visitor))
            self._changed.notify_all()
        if self._error is not None:
            raise self._error

    def wait(self, count: int) -> list[tuple[Trace, str]]:
        """Wait until `count` runs have been handed over."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.ended) >= count, PATIENCE)
            return list(self.ended)


@contextmanager
def running(
    denoiser: FakeDenoiser, *, gate: Gate | None = None, on_end: Callable[[Trace, str], None] = _nothing, **limits: int
) -> Iterator[Engine]:
    """An engine whose model is `denoiser`; `gate` is opened before the engine is closed."""
    engine = Engine(Settings(**limits), on_end=on_end, load=lambda *_: denoiser, models=frozenset({"pocket"}))
    try:
        yield engine
    finally:
        if gate is not None:
            gate.open()
        engine.close()


def ask(prompt: str = "a", **knobs: object) -> GenerationRequest:
    """A request with small defaults: four positions, one a forward."""
    return GenerationRequest.model_validate({"prompt": prompt, "length": 4, "steps": 4, "block": 0, "seed": 1, **knobs})


class Clock:
    """Stands for the `time` module: time passes only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def module(self) -> SimpleNamespace:
        """What to put in place of `time`."""
        return SimpleNamespace(monotonic=self, perf_counter=self)
