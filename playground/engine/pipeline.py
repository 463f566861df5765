"""The Python door: `DenoisingPipeline("pocket").generate("Why is the sky blue?")`."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from playground.denoisers.base import Tokens
from playground.engine.engine import Engine
from playground.engine.filling import Filled, Filling
from playground.engine.run import Run
from playground.engine.state import ModelState
from playground.engine.structured import Structured, StructuredFilling
from playground.infill.markup import parse
from playground.request import RequestError, parse_request
from playground.settings import Settings
from playground.trace import Frame, Outcome, Result, Trace


class PipelineError(RuntimeError):
    """The model could not be loaded or a run failed; the text is one sentence."""


class DenoisingPipeline:
    """A model kept in memory, for scripts and notebooks.

    Args:
        model: name of a model (`python -m playground models` lists them).
        settings: limits and device; the process's own when left out.
        engine: use this engine's models and queue instead of an engine of its own.

    Raises:
        RequestError: no such model.
        PipelineError: the model cannot be loaded.

    Example:
        >>> pipeline = DenoisingPipeline("pocket")
        >>> text = pipeline.generate("Why is the sky blue?", target_length=48, steps=48, seed=1)
    """

    def __init__(
        self, model: str = "pocket", *, settings: Settings | None = None, engine: Engine | None = None
    ) -> None:
        self.model = model
        self._owned = engine is None
        self._closed = False
        self._engine = engine or Engine(settings)
        status = self._engine.ready(model)
        if status.state is ModelState.FAILED:
            self.close()
            raise PipelineError(status.message)

    @property
    def tokens(self) -> Tokens:
        """The model's vocabulary and template."""
        denoiser = self._engine.denoiser(self.model)
        assert denoiser is not None
        return denoiser.tokens

    def generate(self, prompt: str, target_length: int | None = None, **knobs: Any) -> str:
        """Denoise a canvas of `target_length` tokens and return its text, up to the first stop id.

        Args:
            prompt: what to write about.
            target_length: canvas length in tokens.
            **knobs: any other field of `GenerationRequest`: steps, block, schedule, temperature, seed …

        Raises:
            RequestError: a knob is out of range.
            PipelineError: the run failed. (A run ended by its deadline returns the text so far.)
        """
        trace = self.trace(prompt, target_length, **knobs)
        assert trace.outcome is not None
        return trace.outcome.text

    def trace(self, prompt: str, target_length: int | None = None, **knobs: Any) -> Trace:
        """Like `generate`, but gives the whole trace: header, frames, outcome."""
        run = self._submit(prompt, target_length, knobs)
        for _ in run.events():
            pass
        assert run.trace is not None
        _raise_if_failed(run.trace.outcome)
        return run.trace

    def infill(self, text: str, *, candidates: int = 1, **knobs: Any) -> list[Filled]:
        """Fill the blanks of a text; what is outside them stays byte for byte.

        Args:
            text: with `[[ ]]` (a length is found), `[[8]]` (eight tokens) or `[[4-12]]` in it.
            candidates: ways to fill them that are wanted.
            **knobs: any field of `GenerationRequest`; `prompt` says what the whole text is.

        Returns:
            The candidates, best first: whole text, what stands in each blank, score, trace.

        Raises:
            MarkupError: no blank, or one that makes no sense.
            RequestError: a knob is out of range.
            PipelineError: no try finished.
        """
        if self._closed:
            raise PipelineError("This pipeline is closed; make another one.")
        filling = Filling(self._engine, parse(text), {"model": self.model, **knobs}, keep=candidates)
        for _ in filling:
            pass
        if failed := filling.best.failed:
            raise PipelineError(failed)
        return filling.candidates

    def fill_json(self, schema: object, prompt: str, **knobs: Any) -> Structured:
        """Fill a schema's values: JSON that parses, and holds to the schema or says why not.

        Args:
            schema: a JSON Schema, or a list of tools in OpenAI's shape.
            prompt: what the values are about.
            **knobs: any field of `GenerationRequest`.

        Raises:
            SchemaError: the schema cannot be made into a skeleton.
            RequestError: a knob is out of range, or the model cannot read from left to right.
        """
        if self._closed:
            raise PipelineError("This pipeline is closed; make another one.")
        filling = StructuredFilling(self._engine, schema, {"model": self.model, "prompt": prompt, **knobs})
        for _ in filling:
            pass
        assert filling.result is not None
        return filling.result

    def stream(self, prompt: str, target_length: int | None = None, **knobs: Any) -> Iterator[Frame]:
        """Frames as they are made. The request is checked at once; leaving the loop early stops the run."""
        return _Frames(self._submit(prompt, target_length, knobs))

    def _submit(self, prompt: str, target_length: int | None, knobs: dict[str, Any]) -> Run:
        if self._closed:
            raise PipelineError("This pipeline is closed; make another one.")
        values = {"prompt": prompt, "model": self.model, **knobs}
        if target_length is not None:
            if "length" in knobs:
                raise RequestError("Give target_length or length, not both.")
            values["length"] = target_length
        return self._engine.submit(parse_request(values, self._engine.settings.limits))

    def close(self) -> None:
        """Free the model; runs under way end with their text so far."""
        if self._owned:
            self._closed = True
            self._engine.close()

    def __enter__(self) -> DenoisingPipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Frames(Iterator[Frame]):
    """A run's frames; the run stops when these are closed or dropped, even if none was ever taken.

    (A generator's own `finally` would not run then.)
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = iter(run.events())

    def __next__(self) -> Frame:
        for event in self._events:
            if isinstance(event, Frame):
                return event
            if isinstance(event, Outcome):
                _raise_if_failed(event)
        raise StopIteration

    def close(self) -> None:
        """Stop the run."""
        self._events = iter(())
        self._run.cancel()

    def __del__(self) -> None:
        self.close()


def _raise_if_failed(outcome: Outcome | None) -> None:
    if outcome is not None and outcome.result is Result.FAILED:
        raise PipelineError(outcome.message)
