"""A Llama whose adapter is gated by row: observed rows run the base, mask rows run base + adapter.

One pass serves many canvases: the rows of all of them are laid end to end (no padding), observed rows first,
so every weight is read once a forward however many runs are active, and only attention looks at one canvas
at a time. Keys and values of observed rows stay in each canvas's cache. This module must not know what a
mask token, a schedule or a tokenizer is: it is given embeddings, positions and spans.

Gating an adapter to mask positions so that the base stays exact: I-DLM (arXiv 2604.11035). Observed tokens
first under a causal mask: WeDLM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from playground.denoisers.gguf import GGUFFile


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """Sizes of the network, as the checkpoint states them."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int
    context: int
    rope_base: float
    epsilon: float

    @classmethod
    def from_gguf(cls, metadata: dict[str, object]) -> LlamaShape:
        """Read the sizes from GGUF metadata."""

        def number(key: str) -> float:
            return float(str(metadata[f"llama.{key}"]))

        return cls(
            layers=int(number("block_count")),
            width=int(number("embedding_length")),
            heads=int(number("attention.head_count")),
            kv_heads=int(number("attention.head_count_kv")),
            head_width=int(number("rope.dimension_count")),
            vocabulary=int(number("vocab_size")),
            context=int(number("context_length")),
            rope_base=number("rope.freq_base"),
            epsilon=number("attention.layer_norm_rms_epsilon"),
        )


@dataclass(frozen=True, slots=True)
class Span:
    """The rows of one canvas in a forward.

    `keys_values` is that canvas's cache `[layers, 2, kv_heads, capacity, head_width]`, of which the first
    `kept` entries are valid. `observed` and `masked` are the canvas's rows in the forward; after it, the
    cache holds the observed rows too (the mask rows behind them are scratch). `visible`, `[queries, kept + queries]`,
    is added to the attention's scores in place of the causal order.
    """

    keys_values: Tensor
    kept: int
    observed: slice
    masked: slice
    visible: Tensor | None = None


class GatedLinear:
    """`y = W x` on observed rows, `y = (W + B A) x` on mask rows; W may be several projections fused.

    Both matrices are kept: on CPU a merged copy was measured faster than the low-rank detour at every row
    count tried (4 to 128), since the detour's many small products cost more than the copy's memory traffic.
    They are kept as `[in, out]`: over row counts from 1 to 256 that is MKL's best order (1.1x over `[out, in]` at 128
    rows, 1.5x at 127, where the latter meets odd strides). Copies packed for 128 rows were 1.03x faster there, for
    0.4 GiB and a second of loading: not worth it.

    Args:
        weights: base matrices `[out_i, in]`, concatenated along their outputs.
        adapters: for each of them `(A [rank, in], B [out_i, rank])`, scaling already applied.
        gains: of the norm before, `[in]`, multiplied into both; None for no norm.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        adapters: Sequence[tuple[Tensor, Tensor]],
        gains: Tensor | None,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        base = torch.cat(list(weights)).t().contiguous()
        if gains is not None:
            base.mul_(gains[:, None])
        merged, end = base.clone(), 0
        for first, second in adapters:
            start, end = end, end + second.shape[0]
            down = first.t() if gains is None else first.t() * gains[:, None]
            merged[:, start:end].addmm_(down, second.t())
        self.base, self.merged = base.to(device, dtype), merged.to(device, dtype)

    def __call__(self, rows: Tensor, observed: int) -> Tensor:
        """Apply to `rows` `[n, in]`, of which the first `observed` are observed; gives `[n, out]`."""
        result = rows.new_empty(rows.shape[0], self.base.shape[1])
        for part, weight in self._parts(rows.shape[0], observed):
            torch.mm(rows[part], weight, out=result[part])
        return result

    def add_to(self, total: Tensor, rows: Tensor, observed: int) -> None:
        """Add what a call would give to `total` `[n, out]`, in place."""
        for part, weight in self._parts(rows.shape[0], observed):
            total[part].addmm_(rows[part], weight)

    def _parts(self, count: int, observed: int) -> list[tuple[slice, Tensor]]:
        parts = [(slice(0, observed), self.base), (slice(observed, count), self.merged)]
        return [(part, weight) for part, weight in parts if part.stop > part.start]


@dataclass(slots=True)
class _Layer:
    qkv: GatedLinear
    out: GatedLinear
    gate_up: GatedLinear
    down: GatedLinear


class GatedLlama:
    """The network: embedding and head shared, `forward` over ragged rows, `head` over chosen rows.

    Args:
        checkpoint: GGUF file of the base.
        adapter: PEFT LoRA tensors, names as PEFT writes them.
        scaling: `lora_alpha / r`.
        device, dtype: where and as what the weights are kept.
    """

    def __init__(
        self,
        checkpoint: GGUFFile,
        adapter: dict[str, Tensor],
        scaling: float,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.shape = LlamaShape.from_gguf(checkpoint.metadata)
        self.device, self.dtype = device, dtype
        self.embedding = checkpoint.tensor("token_embd.weight").to(device, dtype)
        self.final_norm = checkpoint.tensor("output_norm.weight").to(device, dtype)
        self._layers = [self._load_layer(checkpoint, adapter, scaling, i) for i in range(self.shape.layers)]
        self._rotary = self._rotary_table()

    @classmethod
    def load(cls, checkpoint: Path, adapter: Path, scaling: float, device: torch.device) -> GatedLlama:
        """Load from files; float32 on CPU, bfloat16 elsewhere."""
        dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
        return cls(GGUFFile(checkpoint), load_file(adapter), scaling, device, dtype)

    def _load_layer(self, checkpoint: GGUFFile, adapter: dict[str, Tensor], scaling: float, index: int) -> _Layer:
        shape = self.shape

        def base(name: str) -> Tensor:
            return checkpoint.tensor(f"blk.{index}.{name}.weight")

        def lora(block: str, name: str, heads: int = 0) -> tuple[Tensor, Tensor]:
            stem = f"base_model.model.model.layers.{index}.{block}.{name}_proj"
            first, second = adapter[f"{stem}.lora_A.weight"].float(), adapter[f"{stem}.lora_B.weight"].float()
            if heads:
                # Rotary embedding pairs dimension i with i + half; the checkpoint has them side by side (llama.cpp's
                # order), and so must what is added to it.
                paired = second.view(heads, 2, shape.head_width // 2, -1).transpose(1, 2)
                second = paired.reshape(second.shape)
            return first, second * scaling

        place = (self.device, self.dtype)
        return _Layer(
            qkv=GatedLinear(
                [base("attn_q"), base("attn_k"), base("attn_v")],
                [
                    lora("self_attn", "q", shape.heads),
                    lora("self_attn", "k", shape.kv_heads),
                    lora("self_attn", "v"),
                ],
                base("attn_norm"),
                *place,
            ),
            out=GatedLinear([base("attn_output")], [lora("self_attn", "o")], None, *place),
            gate_up=GatedLinear(
                [base("ffn_gate"), base("ffn_up")],
                [lora("mlp", name) for name in ("gate", "up")],
                base("ffn_norm"),
                *place,
            ),
            down=GatedLinear([base("ffn_down")], [lora("mlp", "down")], None, *place),
        )

    def _rotary_table(self) -> Tensor:
        """Unit complex numbers `[context, head_width / 2]` (RoFormer, arXiv 2104.09864)."""
        half = torch.arange(0, self.shape.head_width, 2, dtype=torch.float64) / self.shape.head_width
        angles = torch.outer(torch.arange(self.shape.context).double(), self.shape.rope_base**-half)
        return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).to(self.device)

    # --- running --------------------------------------------------------------------------------

    def new_cache(self, capacity: int) -> Tensor:
        """An empty cache `[layers, 2, kv_heads, capacity, head_width]`."""
        shape = self.shape
        return torch.empty(
            shape.layers,
            2,
            shape.kv_heads,
            capacity,
            shape.head_width,
            device=self.device,
            dtype=self.dtype,
        )

    def forward(self, rows: Tensor, positions: Tensor, observed: int, spans: Sequence[Span]) -> Tensor:
        """Run all layers.

        Args:
            rows: input embeddings `[n, width]`; the first `observed` are observed, the rest masks.
            positions: logical position of each row `[n]`.
            spans: whose row is whose; each canvas's rows see its kept cache, its observed rows before
                them, and (mask rows) its mask rows before them.

        Returns:
            Hidden states after the final norm, `[n, width]`.
        """
        rotary = self._rotary[positions][:, None]
        visible = [self._visible(span) for span in spans]
        rows = rows.clone()  # the residual stream, added to in place
        for index, layer in enumerate(self._layers):
            mixed = self._attend(layer.qkv(self._norm(rows), observed), rotary, index, spans, visible)
            layer.out.add_to(rows, mixed, observed)
            gate, up = layer.gate_up(self._norm(rows), observed).chunk(2, dim=-1)
            layer.down.add_to(rows, functional.silu(gate, inplace=True).mul_(up), observed)
        return self._norm(rows) * self.final_norm

    def head(self, hidden: Tensor) -> Tensor:
        """Vocabulary logits `[n, vocabulary]`, float32, of hidden states `[n, width]`."""
        if hidden.device.type != "cpu":
            return functional.linear(hidden, self.embedding).float()
        logits = torch.empty(hidden.shape[0], self.shape.vocabulary)
        hidden = hidden.contiguous()
        # In slices whose output stays in cache.
        for start in range(0, self.shape.vocabulary, 4096):
            stop = min(start + 4096, self.shape.vocabulary)
            torch.mm(hidden, self.embedding[start:stop].t(), out=logits[:, start:stop])
        return logits

    def _norm(self, rows: Tensor) -> Tensor:
        """RMS norm without its gains, which the next product holds."""
        wide = rows.float()
        length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
        return (wide * torch.rsqrt(length.square() / wide.shape[-1] + self.shape.epsilon)).to(rows.dtype)

    def _visible(self, span: Span) -> Tensor | None:
        """Zero where a query sees a key, else minus infinity, `[queries, keys]`: causal, aligned at the end; None where
        one sees all."""
        if span.visible is not None:
            return span.visible
        queries = (span.observed.stop - span.observed.start) + (span.masked.stop - span.masked.start)
        if queries == 1:
            return None
        hidden = torch.full((queries, span.kept + queries), float("-inf"), dtype=self.dtype, device=self.device)
        return hidden.triu(diagonal=span.kept + 1)

    def _attend(
        self,
        qkv: Tensor,
        rotary: Tensor,
        layer: int,
        spans: Sequence[Span],
        visible: Sequence[Tensor | None],
    ) -> Tensor:
        shape = self.shape
        heads = qkv.view(qkv.shape[0], shape.heads + 2 * shape.kv_heads, shape.head_width)
        turned = _rotate(heads[:, : shape.heads + shape.kv_heads], rotary)
        queries, keys = turned[:, : shape.heads], turned[:, shape.heads :]
        values = heads[:, shape.heads + shape.kv_heads :]
        mixed = qkv.new_empty(qkv.shape[0], shape.width)
        for span, seen in zip(spans, visible, strict=True):
            query = _rows_of(queries, span).transpose(0, 1)
            end = span.kept + query.shape[1]
            cache = span.keys_values[layer, :, :, :end]
            cache[0, :, span.kept :] = _rows_of(keys, span).transpose(0, 1)
            cache[1, :, span.kept :] = _rows_of(values, span).transpose(0, 1)
            answer = functional.scaled_dot_product_attention(
                query[None], cache[0][None], cache[1][None], attn_mask=seen, enable_gqa=True
            )[0]
            flat = answer.transpose(0, 1).reshape(-1, shape.width)
            if len(spans) == 1:
                return flat
            count = span.observed.stop - span.observed.start
            mixed[span.observed] = flat[:count]
            mixed[span.masked] = flat[count:]
        return mixed


def _rotate(heads: Tensor, rotary: Tensor) -> Tensor:
    """Turn each pair of neighbours in `heads` `[n, heads, head_width]` by `rotary` `[n, 1, head_width / 2]`."""
    pairs = torch.view_as_complex(heads.float().view(*heads.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotary).flatten(-2).to(heads.dtype)


def _rows_of(rows: Tensor, span: Span) -> Tensor:
    """A canvas's rows, observed first."""
    if span.observed.stop == span.masked.start:
        return rows[span.observed.start : span.masked.stop]
    return torch.cat((rows[span.observed], rows[span.masked]))
