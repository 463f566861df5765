"""The controls and the request have to agree: same fields, same bounds, same choices."""

from __future__ import annotations

from typing import Any

import gradio as gr
import pytest

from playground.presets import DEFAULT_PRESET, PRESETS
from playground.request import Confidence, Correction, GenerationRequest, Schedule, StopRule, parse_request
from playground.settings import Settings
from playground.ui.knobs import FIELDS, UNUSED, Knobs, SeedRow, completed, defaults, settings_of, uses
from tests.ui.building import built

ELSEWHERE = {
    "start",
    "banned",
    "one_line",
    "scored",
    "parent_run_id",
    "parent_step",
    "prompt",
    "model",
    "seed",
    "deadline",
    "stop_penalty",
    "end_at_stop",
}
"""Fields of the request that have a control of their own, or none on the page."""
SETTINGS = Settings(max_length=100, max_steps=90)


@pytest.fixture(scope="module")
def knobs() -> Knobs:
    """The controls of a deployment with small limits."""
    return built(lambda: Knobs(SETTINGS))


def test_every_setting_has_a_knob(knobs: Knobs) -> None:
    """Nothing of the request is forgotten, and the order is the one in which values are read."""
    assert set(FIELDS) | ELSEWHERE == set(GenerationRequest.model_fields)
    assert set(FIELDS) & ELSEWHERE == set()
    assert knobs.components == [knobs.by_name[name] for name in FIELDS]


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
    ("field", "names"),
    [("schedule", Schedule), ("confidence", Confidence), ("correction", Correction), ("stop_rule", StopRule)],
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


CASES = [("schedule", choice.value) for choice in Schedule] + [("correction", choice.value) for choice in Correction]
DECIDED = {"schedule": ("steps", "threshold", "entropy_bound"), "correction": ("acceptance", "candidates")}


@pytest.mark.parametrize(("decides", "choice"), CASES)
def test_knobs_without_a_say_are_grey(knobs: Knobs, decides: str, choice: str) -> None:
    """An update for every control, in order; one choice decides which can be moved and sets nothing else."""
    chosen = {decides: choice}
    updates = dict(zip(FIELDS, knobs.updates(chosen), strict=True))
    for name in DECIDED[decides]:
        assert updates[name]["interactive"] == uses(chosen, name)
        assert "value" not in updates[name]
        assert str(updates[name]["info"]).endswith(UNUSED[decides]) != uses(chosen, name)
    assert updates[decides]["value"] == choice
    untouched = set(FIELDS) - {decides, *DECIDED[decides]}
    assert all(uses(chosen, name) and "interactive" not in updates[name] for name in untouched)


def test_fresh_page_greys_out_too(knobs: Knobs) -> None:
    """Before anything was chosen, the default preset has decided already."""
    for decides, names in DECIDED.items():
        for name in names:
            knob = knobs.by_name[name]
            assert isinstance(knob, gr.Slider)
            assert knob.interactive == uses(defaults(), name)
            assert str(knob.info).endswith(UNUSED[decides]) != uses(defaults(), name)


def test_a_stored_request_of_an_older_version_gets_the_defaults_of_its_time() -> None:
    """A run stored before corrections existed had none, whatever the page is set to."""
    old = {"prompt": "x", "length": 9, "schedule": "cosine"}
    assert completed(old)["correction"] == "none"
    assert completed(old)["length"] == 9
    assert set(FIELDS) <= set(completed(old))


def test_seed_hands_on_what_was_typed() -> None:
    """Bounds are the request's, whose sentence is better than Gradio's; an empty field is no seed."""
    seed = built(SeedRow).seed
    assert seed.preprocess(-5) == -5
    assert seed.preprocess(2**40) == 2**40
    assert seed.preprocess(None) is None
