"""The controls and the request have to agree: same fields, same bounds, same choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from playground.presets import DEFAULT_PRESET, PRESETS
from playground.request import (
    MAX_SEED,
    Confidence,
    GenerationRequest,
    Schedule,
    StopRule,
    parse_request,
)
from playground.settings import Settings
from playground.ui.knobs import FIELDS, Knobs, SeedRow, defaults, settings_of, uses

ELSEWHERE = {"prompt", "model", "seed", "deadline", "stop_penalty", "end_at_stop"}
"""Fields of the request that have a control of their own, or none on the page."""
SETTINGS = Settings(max_length=100, max_steps=90)


@pytest.fixture(scope="module")
def knobs() -> Iterator[Knobs]:
    """The controls of a deployment with small limits."""
    with gr.Blocks():
        yield Knobs(SETTINGS)


def test_every_setting_has_a_knob(knobs: Knobs) -> None:
    """Nothing of the request is forgotten, and the order is the one in which values are read."""
    assert set(FIELDS) | ELSEWHERE == set(GenerationRequest.model_fields)
    assert set(FIELDS) & ELSEWHERE == set()
    assert list(knobs.by_name) != [] and knobs.components == [knobs.by_name[name] for name in FIELDS]


def test_every_knob_teaches(knobs: Knobs) -> None:
    """Each has a name and a sentence."""
    for name, knob in knobs.by_name.items():
        assert knob.label, name  # type: ignore[attr-defined]
        assert str(knob.info).endswith("."), name  # type: ignore[attr-defined]


def test_sliders_stay_within_what_is_allowed(knobs: Knobs) -> None:
    """Both ends of every slider make a request; the deployment's limits are the sliders' too."""
    limits = {}
    for name, knob in knobs.by_name.items():
        if isinstance(knob, gr.Slider):
            for end in (knob.minimum, knob.maximum):
                parse_request({"prompt": "x", **defaults(), name: end})
            limits[name] = knob.maximum
    assert (limits["length"], limits["steps"], limits["block"]) == (100, 90, 100)


@pytest.mark.parametrize(
    ("field", "names"), [("schedule", Schedule), ("confidence", Confidence), ("stop_rule", StopRule)]
)
def test_lists_offer_every_choice(knobs: Knobs, field: str, names: Any) -> None:
    """Once each."""
    knob = knobs.by_name[field]
    assert isinstance(knob, gr.Dropdown)
    assert sorted(str(value) for _, value in knob.choices) == sorted(name.value for name in names)


def test_fresh_page_is_a_request() -> None:
    """What stands on a fresh page can be run, and is what its preset says."""
    asked = parse_request({"prompt": "x", **settings_of([defaults()[name] for name in FIELDS])})
    assert {name: getattr(asked, name) for name in PRESETS[DEFAULT_PRESET].values} == PRESETS[DEFAULT_PRESET].values


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_requests(name: str) -> None:
    """Each names only fields that have a knob, and only values that the request takes."""
    values = PRESETS[name].values
    assert set(values) <= set(FIELDS)
    parse_request({"prompt": "x", **values})
    assert PRESETS[name].sentence.endswith(".")


@pytest.mark.parametrize("schedule", [schedule.value for schedule in Schedule])
def test_knobs_without_a_say_are_grey(knobs: Knobs, schedule: str) -> None:
    """An update for every control, in order; a schedule decides which can be moved and sets nothing else."""
    updates = dict(zip(FIELDS, knobs.updates({"schedule": schedule}), strict=True))
    for name in ("steps", "threshold", "entropy_bound"):
        assert updates[name]["interactive"] == uses(schedule, name)
        assert "value" not in updates[name]
    assert updates["schedule"]["value"] == schedule
    assert uses(schedule, "length")


def test_fresh_page_greys_out_too(knobs: Knobs) -> None:
    """Before anything was chosen, the default preset's schedule has decided already."""
    schedule = defaults()["schedule"]
    for name in ("steps", "threshold", "entropy_bound"):
        assert knobs.by_name[name].interactive == uses(schedule, name)  # type: ignore[attr-defined]


def test_seed_bounds() -> None:
    """The field takes what the request takes."""
    with gr.Blocks():
        row = SeedRow()
    assert (row.seed.minimum, row.seed.maximum, row.seed.precision) == (0, MAX_SEED, 0)
    for end in (row.seed.minimum, row.seed.maximum):
        parse_request({"prompt": "x", "seed": end})
