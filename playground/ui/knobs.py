"""The settings of a run as controls: one for each field of the request, each with a sentence that teaches.

Controls are kept in the order of `FIELDS`, so that a list of values from the page zips into a request. Bounds come
from the request and the deployment, never from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
from gradio.components import Component

from playground.presets import DEFAULT_PRESET, PRESETS
from playground.request import Confidence, Correction, GenerationRequest, Schedule, StopRule
from playground.settings import Settings

FIELDS = (
    "length",
    "steps",
    "block",
    "schedule",
    "confidence",
    "threshold",
    "correction",
    "acceptance",
    "candidates",
    "entropy_bound",
    "temperature",
    "top_p",
    "top_k",
    "stop_rule",
    "reproducible",
)
UNUSED = {
    "schedule": " The chosen schedule does not use it.",
    "correction": " The chosen correction does not use it.",
}
"""What is said of a control that another one has switched off, by that other one."""
STEPPED = frozenset({Schedule.EVEN, Schedule.COSINE, Schedule.RAMP})

SCHEDULES = [
    ("Even: the same number each forward", Schedule.EVEN.value),
    ("Cosine: few first, many last", Schedule.COSINE.value),
    ("Threshold: all that are sure enough", Schedule.THRESHOLD.value),
    ("Entropy bound: as many as agree", Schedule.ENTROPY_BOUND.value),
    ("Ramp: a bar that sinks with each step", Schedule.RAMP.value),
]
CONFIDENCES = [
    ("Probability: the surest first", Confidence.PROBABILITY.value),
    ("Margin: the clearest winner first", Confidence.MARGIN.value),
    ("Negative entropy: the narrowest choice first", Confidence.NEG_ENTROPY.value),
    ("Random: any order", Confidence.RANDOM.value),
    ("Leftmost: reading order", Confidence.LEFTMOST.value),
]
CORRECTIONS = [
    ("None: what is committed stays", Correction.NONE.value),
    ("Causal: take back what reads wrong", Correction.CAUSAL.value),
    ("Rescore: try candidates in the whole text", Correction.RESCORE.value),
]
STOP_RULES = [
    ("Never first", StopRule.NEVER_FIRST.value),
    ("Penalty", StopRule.PENALTY.value),
    ("Suppressed", StopRule.SUPPRESSED.value),
    ("Off", StopRule.OFF.value),
]


def defaults() -> dict[str, Any]:
    """Values of a fresh page."""
    base = {name: field.default for name, field in GenerationRequest.model_fields.items()}
    return {**{name: base[name] for name in FIELDS}, **PRESETS[DEFAULT_PRESET].values}


class Knobs:
    """The controls. Create inside a Blocks context.

    Args:
        settings: upper limits of the sliders.
    """

    def __init__(self, settings: Settings) -> None:
        start = defaults()
        self.by_name: dict[str, Component] = {}
        with gr.Group(elem_classes="unmask-group"):
            self._main(settings, start)
        with gr.Accordion("More settings", open=False, elem_id="more-settings"):
            self._more(start)
        self._infos = {name: str(getattr(self.by_name[name], "info", "")) for name in _USED_BY}
        for name in _USED_BY:
            for option, value in self._use(name, start).items():
                setattr(self.by_name[name], option, value)

    @property
    def components(self) -> list[Component]:
        """In the order of `FIELDS`."""
        return [self.by_name[name] for name in FIELDS]

    def _main(self, settings: Settings, start: Mapping[str, Any]) -> None:
        self.by_name["length"] = gr.Slider(
            1,
            settings.max_length,
            start["length"],
            step=1,
            label="Length",
            info="Tokens on the canvas. It is fixed beforehand: that is how diffusion differs most from typing.",
            elem_id="length",
        )
        self.by_name["steps"] = gr.Slider(
            1,
            settings.max_steps,
            start["steps"],
            step=1,
            label="Steps",
            info="Forwards to spend. Fewer steps commit more positions at once: faster, and rougher.",
            elem_id="steps",
        )
        self.by_name["block"] = gr.Slider(
            0,
            settings.max_length,
            start["block"],
            step=1,
            label="Block",
            info="Positions worked on together, block after block; 0 is the whole canvas at once.",
            elem_id="block",
        )
        self.by_name["schedule"] = gr.Dropdown(
            SCHEDULES,
            value=start["schedule"],
            label="Schedule",
            info="How many positions each forward commits.",
            elem_id="schedule",
        )
        self.by_name["confidence"] = gr.Dropdown(
            CONFIDENCES,
            value=start["confidence"],
            label="Confidence",
            info="Which positions go first.",
            elem_id="confidence",
        )
        self.by_name["threshold"] = gr.Slider(
            0,
            1,
            start["threshold"],
            step=0.01,
            label="Threshold",
            info="Every guess at least this probable is committed; higher is slower and safer.",
            elem_id="threshold",
        )
        self.by_name["correction"] = gr.Dropdown(
            CORRECTIONS,
            value=start["correction"],
            label="Correction",
            info="What is done about commits that do not fit together.",
            elem_id="correction",
        )
        self.by_name["acceptance"] = gr.Slider(
            0,
            1,
            start["acceptance"],
            step=0.05,
            label="Acceptance",
            info="A token stays if, read from left to right, it is this likely beside the best; 1 keeps only the best.",
            elem_id="acceptance",
        )
        self.by_name["temperature"] = gr.Slider(
            0,
            2,
            start["temperature"],
            step=0.05,
            label="Temperature",
            info="0 takes the most probable token; higher draws more freely, so runs differ by seed.",
            elem_id="temperature",
        )

    def _more(self, start: Mapping[str, Any]) -> None:
        self.by_name["candidates"] = gr.Slider(
            2,
            64,
            start["candidates"],
            step=1,
            label="Candidates",
            info="Tokens tried at each position once the canvas is full; the whole text decides (rescore).",
            elem_id="candidates",
        )
        self.by_name["entropy_bound"] = gr.Slider(
            0,
            5,
            start["entropy_bound"],
            step=0.05,
            label="Entropy bound",
            info="How much joint uncertainty, in nats, one forward may commit (entropy-bound schedule).",
            elem_id="entropy-bound",
        )
        self.by_name["top_p"] = gr.Slider(
            0.01,
            1,
            start["top_p"],
            step=0.01,
            label="Top-p",
            info="Draw only from the most probable tokens that together reach this mass. 1 is all of them.",
            elem_id="top-p",
        )
        self.by_name["top_k"] = gr.Slider(
            0,
            500,
            start["top_k"],
            step=1,
            label="Top-k",
            info="Draw only from this many most probable tokens. 0 is all of them.",
            elem_id="top-k",
        )
        self.by_name["stop_rule"] = gr.Dropdown(
            STOP_RULES,
            value=StopRule.NEVER_FIRST.value,
            label="End-of-text tokens",
            info="Diffusion models like to end early; this makes it harder or impossible.",
            elem_id="stop-rule",
        )
        self.by_name["reproducible"] = gr.Checkbox(
            value=False,
            label="Reproducible",
            info="Run alone on the device, so that the same seed gives the same trace to the last bit.",
            elem_id="reproducible",
        )

    def updates(self, values: Mapping[str, Any]) -> list[Any]:
        """An update for each control; fields that `values` lacks stay as they are."""
        return [self._update(name, values) for name in FIELDS]

    def _update(self, name: str, values: Mapping[str, Any]) -> Any:
        options: dict[str, Any] = {"value": values[name]} if name in values else {}
        options |= self._use(name, values)
        return gr.update(**options) if options else gr.skip()

    def _use(self, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Grey where the control that decides about it leaves it no say, and say why."""
        decides, _ = _USED_BY.get(name, ("", frozenset()))
        if decides not in values:
            return {}
        used = uses(values, name)
        return {"interactive": used, "info": self._infos[name] + ("" if used else UNUSED[decides])}


def uses(values: Mapping[str, Any], field: str) -> bool:
    """Whether a run with these settings looks at `field`; controls it does not look at are greyed out."""
    decides, users = _USED_BY.get(field, ("", frozenset()))
    return decides not in values or values[decides] in users


_USED_BY: Mapping[str, tuple[str, frozenset[str]]] = {
    "steps": ("schedule", frozenset(s.value for s in STEPPED)),
    "threshold": ("schedule", frozenset({Schedule.THRESHOLD.value})),
    "entropy_bound": ("schedule", frozenset({Schedule.ENTROPY_BOUND.value})),
    "acceptance": ("correction", frozenset({Correction.CAUSAL.value})),
    "candidates": ("correction", frozenset({Correction.RESCORE.value})),
}
DECIDING = ("schedule", "correction")
"""Controls that grey out others."""


def settings_of(values: Sequence[Any]) -> dict[str, Any]:
    """Control values in the order of `FIELDS`, as request fields."""
    return dict(zip(FIELDS, values, strict=True))


def completed(request: Mapping[str, Any]) -> dict[str, Any]:
    """A stored request with the settings that did not exist when it was stored, as they were then: their defaults."""
    known = {name: field.default for name, field in GenerationRequest.model_fields.items() if name in FIELDS}
    return {**known, **request}


class SeedRow:
    """Seed, dice and lock: unlocked, each run draws a new seed and shows it here."""

    def __init__(self) -> None:
        with gr.Row(elem_id="seed-row", equal_height=True):
            # Left to the request, which answers with a sentence: Gradio raises at bounds, and rounds.
            self.seed = gr.Number(
                value=None,
                label="Seed",
                info="Fixes a run on a device. Unlocked, each run draws one and shows it here.",
                elem_id="seed",
                scale=4,
                min_width=120,
            )
            self.dice = gr.Button("Draw a seed", elem_id="dice", scale=0, min_width=44)
            self.lock = gr.Checkbox(value=False, label="Lock", elem_id="lock", scale=0, min_width=84)
