"""How fast one forward is, next to what the machine's matrix products can do at that very moment.

A forward is mostly matrix products, so their rate is its roofline. Two rates are given: that of a large square product,
and that of the network's own layer shapes, which are thin when a canvas is short. Must not know requests or runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from playground.denoisers.base import Denoiser, Job
from playground.denoisers.gguf import GGUFFile
from playground.denoisers.llama import LlamaShape
from playground.labs.bench_results import ForwardResult, Spread
from playground.labs.bench_timing import in_turn, prompt_of, seconds_of

CANVASES = (32, 64, 128)
PROMPT_TOKENS = 64
SQUARE = {"cpu": 2048, "cuda": 8192, "mps": 4096}
"""Side of the square product: large enough to be bound by arithmetic, small enough to be quick."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What counts towards a forward's arithmetic."""

    layers: int
    width: int
    vocabulary: int
    shapes: tuple[tuple[int, int], ...]
    """(outputs, inputs) of a layer's fused products: query-key-value, output, gate-up, down."""

    @classmethod
    def of_checkpoint(cls, path: Path) -> Sizes:
        """Read them from the model's GGUF file."""
        metadata = GGUFFile(path).metadata
        shape = LlamaShape.from_gguf(metadata)
        inner = int(str(metadata["llama.feed_forward_length"]))
        mixed = (shape.heads + 2 * shape.kv_heads) * shape.head_width
        return cls(
            layers=shape.layers,
            width=shape.width,
            vocabulary=shape.vocabulary,
            shapes=(
                (mixed, shape.width),
                (shape.width, shape.heads * shape.head_width),
                (2 * inner, shape.width),
                (shape.width, inner),
            ),
        )

    def layer_flop(self, rows: int) -> float:
        """Products of all layers, a multiplication and an addition for each weight and row."""
        return 2.0 * rows * self.layers * sum(outputs * inputs for outputs, inputs in self.shapes)

    def forward_flop(self, canvas: int, cached: int) -> float:
        """A forward of a masked canvas behind `cached` keys, all of its logits wanted.

        Attention counts every pair of row and key, as it is computed; the head has one row more than the canvas,
        which joins the causal prior for the first position.
        """
        attention = 4.0 * canvas * (cached + canvas) * self.width * self.layers
        head = 2.0 * (canvas + 1) * self.width * self.vocabulary
        return self.layer_flop(canvas) + attention + head


def measure_forward(
    denoiser: Denoiser,
    sizes: Sizes,
    repeats: int,
    *,
    canvases: Sequence[int] = CANVASES,
    prompt_tokens: int = PROMPT_TOKENS,
    side: int | None = None,
) -> Iterator[ForwardResult]:
    """One result for each canvas, as it is measured."""
    square = _Square(side or SQUARE[denoiser.device.type], denoiser)
    layers = _Layers(sizes, denoiser)
    prompt = denoiser.tokens.encode_prompt(prompt_of(denoiser.tokens, prompt_tokens))
    for canvas in canvases:
        forward = _Forward(denoiser, prompt, canvas)
        own = partial(layers, layers.rows(canvas))
        actions: dict[str, Callable[[], object]] = {"square": square, "forward": forward, "own": own}
        arms = {name: partial(seconds_of, action, denoiser.device) for name, action in actions.items()}
        times = in_turn(arms, repeats)
        yield _result(canvas, prompt_tokens, sizes, square.flop, times)


def _result(
    canvas: int, prompt_tokens: int, sizes: Sizes, square_flop: float, times: dict[str, list[float]]
) -> ForwardResult:
    flop = sizes.forward_flop(canvas, prompt_tokens)
    rates = [flop / seconds / 1e9 for seconds in times["forward"]]
    square = [square_flop / seconds / 1e9 for seconds in times["square"]]
    own = [sizes.layer_flop(canvas) / seconds / 1e9 for seconds in times["own"]]
    return ForwardResult(
        canvas=canvas,
        prompt_tokens=prompt_tokens,
        gflop=round(flop / 1e9, 3),
        seconds=Spread.of(times["forward"]),
        rate=Spread.of(rates),
        square_rate=Spread.of(square),
        own_rate=Spread.of(own),
        share=Spread.of(rate / roof for rate, roof in zip(rates, square, strict=True)),
        share_of_own=Spread.of(rate / roof for rate, roof in zip(rates, own, strict=True)),
    )


class _Forward:
    """A forward of a canvas that is all masks, behind a prompt that is cached."""

    def __init__(self, denoiser: Denoiser, prompt: Sequence[int], canvas: int) -> None:
        self._denoiser = denoiser
        self._job = Job(denoiser.prepare(prompt, canvas), [denoiser.spec.mask_id] * canvas, list(range(canvas)))

    def __call__(self) -> None:
        for logits in self._denoiser.logits([self._job]):
            del logits


class _Square:
    """A square product in the model's own precision."""

    def __init__(self, side: int, denoiser: Denoiser) -> None:
        self.flop = 2.0 * side**3
        self._left = torch.randn(side, side, device=denoiser.device, dtype=denoiser.dtype)
        self._right = torch.randn(side, side, device=denoiser.device, dtype=denoiser.dtype)

    def __call__(self) -> None:
        torch.mm(self._left, self._right)


class _Layers:
    """The products of all layers with nothing between them; each layer has weights of its own, as in the network,
    so that they come from memory and not from a cache."""

    def __init__(self, sizes: Sizes, denoiser: Denoiser) -> None:
        self._denoiser, self._sizes = denoiser, sizes
        shapes = [(inputs, outputs) for outputs, inputs in sizes.shapes]
        self._weights = [self._random(*shape) for _ in range(sizes.layers) for shape in shapes]

    def _random(self, height: int, width: int) -> Tensor:
        return torch.randn(height, width, device=self._denoiser.device, dtype=self._denoiser.dtype)

    def rows(self, count: int) -> dict[int, Tensor]:
        """Random rows for each number of inputs."""
        return {inputs: self._random(count, inputs) for _, inputs in self._sizes.shapes}

    def __call__(self, rows: dict[int, Tensor]) -> None:
        for weight in self._weights:
            torch.mm(rows[weight.shape[0]], weight)
