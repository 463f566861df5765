"""The embedded denoiser: SmolLM2-135M-Instruct with an adapter that answers for masks.

A canvas is read as a text with holes. *Observed* rows (prompt and committed tokens, in order) run the base,
causally, so they are exactly the base reading that text; their keys and values are reused as far as the list
agrees with the last step's. *Mask* rows follow, on base + adapter; they see every observed row, left and right,
and the mask rows before them. Where the token before a mask is observed, the base already predicts the
mask, and both are joined: `log_softmax(base row i-1) + g * (mask row i)`, where the gate g is linear in the mask
row's last hidden state. Mask rows behind the last wanted position change nothing before them and are not computed.

This module must not know schedules, confidences or requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from playground.denoisers.base import DenoiserError, DenoiserSpec, Job, one_line
from playground.denoisers.bytes_bpe import ChatMLTokens
from playground.denoisers.catalogue import POCKET_CHECKPOINT, missing_files
from playground.denoisers.gguf import GGUFError
from playground.denoisers.llama import GatedLlama, Span

MASK_ID = 16
END_ID = 2
HEAD_ROWS = 256
"""Rows whose logits are held at once when several canvases share a forward (49,152 floats a row)."""

SCORED_ROWS = 1024
"""Rows of one forward that scores whole texts."""


@dataclass(slots=True)
class PocketContext:
    """One run's cache: keys, values and final hidden states of its observed rows, in order."""

    prompt: int
    keys_values: Tensor
    hidden: Tensor
    committed: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Plan:
    """What one job adds to a forward."""

    job: Job
    kept: int
    fresh: list[tuple[int, int]]
    masks: list[int]
    committed: list[tuple[int, int]]
    observed: slice = field(default_factory=lambda: slice(0, 0))
    masked: slice = field(default_factory=lambda: slice(0, 0))


class PocketDenoiser:
    """See the module. Weights are float32 on CPU and bfloat16 elsewhere.

    Raises:
        DenoiserError: a file is missing, damaged or of another model.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        if missing := missing_files(folder):
            raise DenoiserError(
                f"The embedded model lacks {', '.join(missing)} in {folder}; "
                "restore assets/pocket from the repository or set UNMASK_POCKET."
            )
        self.tokens = ChatMLTokens(folder / "tokenizer.json")
        try:
            config = json.loads((folder / "adapter_config.json").read_text())
            mask = load_file(folder / "mask.safetensors")
            embedding, self._gate = mask["mask_embedding"], float(mask["prior_gate"])
            weight = mask.get("gate_weight", torch.zeros_like(embedding))
            if not (embedding.isfinite().all() and weight.isfinite().all()):
                raise ValueError("the mask embedding is not numbers")
            self._network = GatedLlama.load(
                folder / POCKET_CHECKPOINT,
                folder / "adapter_model.safetensors",
                config["lora_alpha"] / config["r"],
                device,
            )
            if not embedding.shape == weight.shape == (self._network.shape.width,):
                raise ValueError("the mask embedding has another width")
        except GGUFError as error:
            raise DenoiserError(str(error)) from None
        except Exception as error:  # safetensors and json raise several kinds for a damaged file
            raise DenoiserError(
                f"The embedded model in {folder} is damaged ({one_line(error)}); restore it from the repository."
            ) from None
        self.device, self.dtype = device, self._network.dtype
        self._mask_embedding = embedding.to(device, self.dtype)
        self._gate_weight = weight.to(device, torch.float32)
        self.spec = DenoiserSpec(
            model_id="pocket",
            name="Pocket (SmolLM2 135M)",
            mask_id=MASK_ID,
            stop_ids=(END_ID,),
            vocabulary=self._network.shape.vocabulary,
            context_limit=self._network.shape.context,
            attention="observed tokens first, causal; masks see all observed tokens and the masks before them",
            licence="Apache-2.0",
            template="ChatML",
            causal_check=True,
        )

    @torch.inference_mode()
    def prepare(self, prompt_ids: Sequence[int], length: int) -> PocketContext:
        """Run the prompt through the base once."""
        count = len(prompt_ids)
        keys_values = self._network.new_cache(count + length)
        ids = torch.tensor(prompt_ids, device=self.device)
        span = Span(keys_values, 0, slice(0, count), slice(count, count))
        positions = torch.arange(count, device=self.device)
        hidden = torch.empty(count + length, self._network.shape.width, device=self.device, dtype=self.dtype)
        hidden[:count] = self._network.forward(self._network.embedding[ids], positions, count, [span])
        return PocketContext(count, keys_values, hidden)

    @torch.inference_mode()
    def logits(self, jobs: Sequence[Job]) -> Iterator[Tensor]:
        """One forward for all jobs; see `playground.denoisers.base.Denoiser.logits`."""
        plans = [self._plan(job) for job in jobs]
        hidden = self._forward(plans)
        for group in self._groups(plans):
            yield from self._heads(group, hidden)

    @torch.inference_mode()
    def rescore(self, context: PocketContext, canvas: Sequence[int], position: int, tokens: Sequence[int]) -> Tensor:
        """See `playground.denoisers.base.Rescoring.rescore`. All texts share the cache of what is before the
        position."""
        kept = context.prompt + position
        if [token for at, token in context.committed if at < position] != list(canvas[:position]):
            raise ValueError("the cache is of another text")
        behind = list(canvas[position + 1 :])
        # What the base expects at the position itself, given the text before it.
        first = torch.log_softmax(self._network.head(context.hidden[kept - 1 : kept]), -1)[0]
        scores = first[torch.tensor(list(tokens), device=self.device)]
        if not behind:
            return scores
        each = max(1, SCORED_ROWS // (1 + len(behind)))
        parts = [
            self._read(context.keys_values[:, :, :, :kept], tokens[at : at + each], behind)
            for at in range(0, len(tokens), each)
        ]
        return scores + torch.cat(parts)

    def _read(self, prefix: Tensor, tokens: Sequence[int], behind: list[int]) -> Tensor:
        """Log probability of `behind` after the prefix and each of the tokens, in one forward."""
        count, size, kept = len(tokens), 1 + len(behind), prefix.shape[3]
        keys_values = self._network.new_cache(kept + count * size)
        keys_values[:, :, :, :kept] = prefix
        ids = torch.tensor([[token, *behind] for token in tokens], device=self.device)
        places = torch.arange(kept, kept + size, device=self.device).repeat(count)
        owner = torch.arange(count, device=self.device).repeat_interleave(size)
        seen = (owner[:, None] == owner) & (places[:, None] >= places)
        hidden_from = torch.zeros(count * size, kept + count * size, dtype=self.dtype, device=self.device)
        hidden_from[:, kept:].masked_fill_(~seen, float("-inf"))
        rows = slice(0, count * size)
        span = Span(keys_values, kept, rows, slice(rows.stop, rows.stop), hidden_from)
        hidden = self._network.forward(self._network.embedding[ids.flatten()], places, rows.stop, [span])
        hidden = hidden.view(count, size, -1)[:, :-1].flatten(0, 1)
        targets = ids[:, 1:].flatten()
        found = []
        for at in range(0, len(targets), HEAD_ROWS):
            logits = self._network.head(hidden[at : at + HEAD_ROWS])
            found.append(functional.cross_entropy(logits, targets[at : at + HEAD_ROWS], reduction="none"))
        return -torch.cat(found).view(count, size - 1).sum(-1)

    # --- one forward ----------------------------------------------------------------------------

    def _plan(self, job: Job) -> _Plan:
        context: PocketContext = job.context
        committed = [(at, token) for at, token in enumerate(job.canvas) if token != MASK_ID]
        agreed = 0
        for old, new in zip(context.committed, committed, strict=False):
            if old != new:
                break
            agreed += 1
        last = job.wanted[-1] if job.wanted else -1
        masks = [at for at in range(last + 1) if job.canvas[at] == MASK_ID]
        return _Plan(job, context.prompt + agreed, committed[agreed:], masks, committed)

    def _forward(self, plans: Sequence[_Plan]) -> Tensor:
        """Lay all rows end to end, run them, and keep what the contexts need; gives `[rows, width]`."""
        observed = sum(len(plan.fresh) for plan in plans)
        ids: list[int] = []
        positions: list[int] = []
        row = 0
        for plan in plans:
            ids += [token for _, token in plan.fresh]
            positions += [plan.job.context.prompt + at for at, _ in plan.fresh]
            plan.observed = slice(row, row := row + len(plan.fresh))
        for plan in plans:
            positions += [plan.job.context.prompt + at for at in plan.masks]
            plan.masked = slice(row, row := row + len(plan.masks))
        rows = self._mask_embedding.expand(row, -1).clone()
        if ids:
            rows[:observed] = self._network.embedding[torch.tensor(ids, device=self.device)]
        spans = [Span(p.job.context.keys_values, p.kept, p.observed, p.masked) for p in plans]
        hidden = self._network.forward(rows, torch.tensor(positions, device=self.device), observed, spans)
        for plan in plans:
            context: PocketContext = plan.job.context
            context.hidden[plan.kept : plan.kept + len(plan.fresh)] = hidden[plan.observed]
            context.committed = plan.committed
        return hidden

    @staticmethod
    def _groups(plans: Sequence[_Plan]) -> Iterator[list[_Plan]]:
        """Cut the jobs into runs of at most HEAD_ROWS wanted rows (one job is never cut)."""
        group: list[_Plan] = []
        rows = 0
        for plan in plans:
            count = len(plan.job.wanted) + len(plan.job.checked)
            if group and rows + count > HEAD_ROWS:
                yield group
                group, rows = [], 0
            group.append(plan)
            rows += count
        if group:
            yield group

    def _heads(self, plans: Sequence[_Plan], hidden: Tensor) -> Iterator[Tensor]:
        """Logits of each plan's wanted rows, the causal prior joined in, and of its checked ones."""
        picked: list[Tensor] = []
        priors: list[list[tuple[int, int]]] = []
        for plan in plans:
            row_of = {at: plan.masked.start + i for i, at in enumerate(plan.masks)}
            context: PocketContext = plan.job.context
            prior = self._prior_rows(plan)
            priors.append(prior)
            picked.append(hidden[[row_of[at] for at in plan.job.wanted]])
            # No mask is before a checked position, so it is the (prompt + position)-th observed row.
            picked.append(context.hidden[[context.prompt + at - 1 for at in plan.job.checked]])
            picked.append(context.hidden[[row for _, row in prior]])
        scores = self._network.head(torch.cat(picked))
        at = 0
        for plan, prior in zip(plans, priors, strict=True):
            result = scores[at : (at := at + len(plan.job.wanted) + len(plan.job.checked))]
            causal = scores[at : (at := at + len(prior))]
            rows = [row for row, _ in prior]
            if rows:
                # Each row says itself how much it has to add to what the base expects behind the text on its left.
                masks = hidden[[plan.masked.start + plan.masks.index(plan.job.wanted[row]) for row in rows]]
                gate = self._gate + masks.float() @ self._gate_weight
                result[rows] = torch.log_softmax(causal, -1) + gate[:, None] * result[rows]
            yield result

    @staticmethod
    def _prior_rows(plan: _Plan) -> list[tuple[int, int]]:
        """(index among the wanted, row of the cache) wherever the position before a wanted one is observed."""
        context: PocketContext = plan.job.context
        row_of = {at: context.prompt + i for i, (at, _) in enumerate(plan.committed)}
        row_of[-1] = context.prompt - 1
        return [(i, row_of[at - 1]) for i, at in enumerate(plan.job.wanted) if at - 1 in row_of]
