"""A request is bounded, validated once and immutable; whatever is wrong is said in one sentence."""

from __future__ import annotations

import json
import math
import re
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from playground.request import (
    MAX_PROMPT_CHARACTERS,
    Confidence,
    Correction,
    GenerationRequest,
    RequestError,
    Schedule,
    StopRule,
    clean_text,
    parse_request,
)

WHOLE: dict[str, tuple[int, int]] = {
    "length": (1, 1024),
    "steps": (1, 1024),
    "block": (0, 1024),
    "top_k": (0, 1_000_000),
    "candidates": (2, 64),
    "seed": (0, 2**32 - 1),
}
"""Whole-numbered knobs and their bounds, both allowed."""

NUMBERS: dict[str, tuple[float, float, bool]] = {
    "threshold": (0.0, 1.0, True),
    "acceptance": (0.0, 1.0, True),
    "entropy_bound": (0.0, 20.0, True),
    "temperature": (0.0, 2.0, True),
    "top_p": (0.0, 1.0, False),
    "stop_penalty": (0.0, 100.0, True),
    "deadline": (0.0, 86_400.0, False),
}
"""Other numeric knobs: lowest, highest, and whether the lowest itself is allowed (the highest always is)."""

CHOICES: dict[str, type[StrEnum]] = {
    "schedule": Schedule,
    "confidence": Confidence,
    "correction": Correction,
    "stop_rule": StopRule,
}
KNOBS = [*WHOLE, *NUMBERS]


def check_sentence(error: RequestError) -> str:
    """The error's text, which is one sentence."""
    text = str(error)
    assert text.endswith(".")
    assert not re.search(r"[\x00-\x1f]|Traceback|pydantic|ValidationError|https?://", text)
    text.encode()
    assert text[0].isupper()
    assert error.__cause__ is None
    return text


def sentence_for(**values: Any) -> str:
    """What is said to a bad request."""
    with pytest.raises(RequestError) as caught:
        parse_request({"prompt": "hi", **values})
    return check_sentence(caught.value)


def test_the_table_above_names_every_knob() -> None:
    others = {"prompt", "model", "end_at_stop", "reproducible", "start", "banned", "one_line", "scored"}
    others |= {"parent_run_id", "parent_step"}
    assert {*KNOBS, *CHOICES, *others} == set(GenerationRequest.model_fields)


@pytest.mark.parametrize("knob", WHOLE)
def test_whole_numbers_reach_their_bounds_and_no_further(knob: str) -> None:
    low, high = WHOLE[knob]
    for value in (low, high, float(low), float(high)):
        kept = getattr(parse_request({"prompt": "hi", knob: value}), knob)
        assert kept == value
        assert type(kept) is int
    for value in (low - 1, high + 1, float(low - 1), float(high + 1), 1e300, -(10**30), 10**400, 10**5000):
        said = sentence_for(**{knob: value})
        assert f"{low} to {high}" in said.replace(",", "")


@pytest.mark.parametrize("knob", NUMBERS)
def test_numbers_reach_their_bounds_and_no_further(knob: str) -> None:
    low, high, low_allowed = NUMBERS[knob]
    inside = [high, math.nextafter(low, 1), (low + high) / 2, int(high)] + [low] * low_allowed
    for value in inside:
        kept = getattr(parse_request({"prompt": "hi", knob: value}), knob)
        assert kept == value
        assert type(kept) is float
    outside = [math.nextafter(high, math.inf), math.nextafter(low, -1), high + 1, -1, 1e308, 10**400, -(10**5000)]
    for value in outside + [low] * (not low_allowed):
        said = sentence_for(**{knob: value})
        assert f"{high:g}" in said
        assert f"{low:g}" in said


@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, True, False, "8", "", "nan", "8.0", [8], {"a": 8}, b"8", 8 + 0j, object(), "8\n"],
)
def test_what_is_not_a_number_is_refused(knob: str, value: object) -> None:
    said = sentence_for(**{knob: value})
    assert knob.replace("_", " ") in said.lower()


@pytest.mark.parametrize("knob", [k for k in KNOBS if k not in ("seed", "deadline")])
def test_nothing_is_not_a_number_either(knob: str) -> None:
    sentence_for(**{knob: None})


@given(st.sampled_from(list(WHOLE)), st.floats(allow_nan=False, allow_infinity=False))
def test_fractions_of_whole_numbers_are_refused_and_whole_floats_are_taken(knob: str, value: float) -> None:
    low, high = WHOLE[knob]
    if value == int(value) and low <= value <= high:
        assert getattr(parse_request({"prompt": "hi", knob: value}), knob) == int(value)
    else:
        sentence_for(**{knob: value})


@pytest.mark.parametrize("knob", CHOICES)
def test_unknown_names_list_the_choices(knob: str) -> None:
    for value in ("best", "", "EVEN ", "x\ny", "\ud800", None, 3, ["even"], "a" * 5000):
        said = sentence_for(**{knob: value})
        for choice in CHOICES[knob]:
            assert choice.value in said
        assert len(said) < 400
    for choice in CHOICES[knob]:
        assert getattr(parse_request({"prompt": "hi", knob: choice.value}), knob) is choice


@pytest.mark.parametrize("knob", ["end_at_stop", "reproducible"])
def test_switches_are_switches(knob: str) -> None:
    for value in (True, False):
        assert getattr(parse_request({"prompt": "hi", knob: value}), knob) is value
    for wrong in ("maybe", "x\ny", math.nan, 2, None, [], "\ud800"):
        sentence_for(**{knob: wrong})


@pytest.mark.parametrize("name", ["lenght", "", "a\nb", "\ud800", "x" * 10_000, "__class__"])
def test_unknown_settings_are_named_and_the_known_ones_listed(name: str) -> None:
    said = sentence_for(**{name: 1})
    for knob in GenerationRequest.model_fields:
        assert knob in said


def test_names_that_are_not_text_are_refused() -> None:
    for name in (1, None, (2, 3), b"length"):
        with pytest.raises(RequestError, match=r"\.$"):
            parse_request({"prompt": "hi", name: 1})  # type: ignore[dict-item]


class TestPrompt:
    """The one knob that people write by hand."""

    @pytest.mark.parametrize("prompt", ["", " ", "\n\n", "\t \r\n", "\x00\x07", "\u2003\u2028", "\x1b\n"])
    def test_an_empty_one_is_refused(self, prompt: str) -> None:
        assert "empty" in sentence_for(prompt=prompt)

    def test_a_missing_one_is_refused(self) -> None:
        with pytest.raises(RequestError, match=r"^Prompt is missing; .*\.$"):
            parse_request({})

    @pytest.mark.parametrize("prompt", [None, 5, ["a"], {"a": 1}, b"text", bytearray(b"a\x00")])
    def test_what_is_not_text_is_refused(self, prompt: object) -> None:
        assert "prompt" in sentence_for(prompt=prompt).lower()

    def test_a_long_one_is_refused_with_its_length(self) -> None:
        assert len(parse_request({"prompt": "x" * MAX_PROMPT_CHARACTERS}).prompt) == MAX_PROMPT_CHARACTERS
        said = sentence_for(prompt="x" * (MAX_PROMPT_CHARACTERS + 1))
        assert "100,001" in said
        assert "100,000" in said

    def test_only_what_is_left_after_cleaning_counts(self) -> None:
        assert parse_request({"prompt": "x" + "\r\n" * 60_000}).prompt == "x" + "\n" * 60_000

    @given(st.text(st.characters(codec=None), max_size=60))
    @example("a\r\nb\rc\x00d\x1be\x7ff\x85g\ud800h\U0001f600\tz")
    @example("\r\r\n\n")
    def test_control_characters_line_ends_and_lone_surrogates_are_mended(self, prompt: str) -> None:
        expected = ""
        for before, c in zip(" " + prompt, prompt, strict=False):
            if c == "\r" or (c == "\n" and before != "\r"):
                expected += "\n"
            elif 0xD800 <= ord(c) <= 0xDFFF:
                expected += "?"
            elif c == "\t" or (ord(c) >= 0x20 and not 0x7F <= ord(c) <= 0x9F):
                expected += c
        assert clean_text(prompt) == expected
        assert clean_text(expected) == expected
        if expected.strip():
            assert parse_request({"prompt": prompt}).prompt == expected
        else:
            sentence_for(prompt=prompt)


@pytest.mark.parametrize("model", ["", "x" * 301, "a\ud800", None, 7, ["pocket"]])
def test_bad_model_names_are_refused(model: object) -> None:
    assert "model" in sentence_for(model=model).lower()


def test_a_request_cannot_be_changed() -> None:
    request = parse_request({"prompt": "hi"})
    for knob in GenerationRequest.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(request, knob, getattr(request, knob))
    with pytest.raises(ValidationError):
        request.extra = 1  # type: ignore[attr-defined]
    assert hash(request) == hash(parse_request({"prompt": "hi"}))


@given(
    st.fixed_dictionaries(
        {"prompt": st.text(min_size=1).filter(lambda t: clean_text(t).strip() != "")},
        optional={
            **{knob: st.integers(low, high) for knob, (low, high) in WHOLE.items()},
            **{knob: st.floats(low, high, exclude_min=not given) for knob, (low, high, given) in NUMBERS.items()},
            **{knob: st.sampled_from([c.value for c in choices]) for knob, choices in CHOICES.items()},
            "end_at_stop": st.booleans(),
            "reproducible": st.booleans(),
        },
    )
)
def test_a_good_request_survives_json(values: dict[str, Any]) -> None:
    request = parse_request(values)
    dumped = request.model_dump(mode="json")
    assert parse_request(json.loads(json.dumps(dumped))) == request
    for knob, value in values.items():
        if knob != "prompt":
            assert getattr(request, knob) == value


NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*GenerationRequest.model_fields, "other"]), NONSENSE))
def test_anything_at_all_is_a_request_or_a_sentence(values: dict[str, Any]) -> None:
    try:
        parse_request(values)
    except RequestError as error:
        said = check_sentence(error)
        assert len(said) < 500
