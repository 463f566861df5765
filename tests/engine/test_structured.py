"""Any schema's result parses and holds; what cannot be had is said; slots alone are masked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from playground.engine.engine import Engine
from playground.engine.structured import Structured, StructuredFilling
from playground.infill.scaffold import SchemaError
from playground.request import RequestError
from playground.settings import Settings
from playground.trace import Trace
from tests.engine.json_fake import JsonDenoiser
from tests.fakes import FakeDenoiser, Log, running

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine(Settings(max_length=1024), load=lambda *_: JsonDenoiser(), models=frozenset({"pocket"}))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def real() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def fill(engine: Engine, schema: object, **values: object) -> Structured:
    filling = StructuredFilling(engine, schema, {"prompt": "Write JSON.", "seed": 1, **values})
    for _ in filling:
        pass
    assert filling.result is not None
    return filling.result


def holds(schema: Any, found: Structured) -> None:
    value = json.loads(found.text)
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)
    assert found.valid
    assert found.problems == ()
    assert found.value == value


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
BOUNDS = st.tuples(st.integers(-3000, 3000), st.integers(0, 3000)).map(
    lambda pair: {"minimum": pair[0], "maximum": sum(pair)}
)
SCALARS = st.one_of(
    st.just({"type": "string"}),
    st.integers(1, 20).map(lambda most: {"type": "string", "maxLength": most}),
    st.lists(st.one_of(NAMES, st.integers(), st.none(), st.booleans()), min_size=1, max_size=4).map(
        lambda values: {"enum": values}
    ),
    NAMES.map(lambda value: {"const": {"a": value}}),
    st.builds(lambda kind, bounds: {"type": kind, **bounds}, st.sampled_from(["integer", "number"]), BOUNDS),
    st.builds(lambda low: {"type": "integer", "exclusiveMinimum": low}, st.integers(-30, 30)),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["integer", "null"]}, {"type": "number"}]),
)


def around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects, arrays and options of what is inside."""

    def as_object(fields: dict[str, Any], wanted: list[bool]) -> dict[str, Any]:
        required = [name for name, must in zip(fields, [*wanted, *[False] * len(fields)], strict=False) if must]
        return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}

    return st.one_of(
        st.builds(as_object, st.dictionaries(NAMES, inner, max_size=3), st.lists(st.booleans(), max_size=3)),
        st.builds(
            lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
            inner,
            st.integers(0, 2),
            st.integers(0, 2),
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda options: {"anyOf": options}),
    )


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.recursive(SCALARS, around, max_leaves=5))
def test_whatever_the_model_writes_the_result_holds(engine: Engine, schema: dict[str, Any]) -> None:
    holds(schema, fill(engine, schema))


VARIED: dict[str, Any] = {
    "nested objects": {
        "type": "object",
        "properties": {
            "who": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}},
            "where": {"$ref": "#/$defs/place"},
        },
        "required": ["who", "where"],
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    },
    "a tree that may end": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1},
        },
        "required": ["name"],
    },
    "arrays of arrays": {"type": "array", "minItems": 2, "items": {"type": "array", "items": {"type": "boolean"}}},
    "a tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"const": 3}], "items": False, "minItems": 2},
    "wide bounds": {"type": "integer", "minimum": 990, "maximum": 100_020},
    "below nothing": {"type": "integer", "maximum": -1000},
    "a share": {"type": "number", "minimum": 0, "maximum": 1},
    "keys of every kind": {
        "type": "object",
        "properties": {'say "hi"\\': {"type": "null"}, "naïve 日本 \u2028": {"type": "boolean"}, "": {"enum": ["é"]}},
        "required": ["", "naïve 日本 \u2028"],
    },
    "all of": {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"required": ["a"]}]},
    "a field called patternProperties": {"type": "object", "properties": {"patternProperties": {"type": "null"}}},
    "anything": {},
    "one of with what all share": {
        "type": "object",
        "properties": {"kind": {"enum": ["x", "y"]}},
        "required": ["kind"],
        "anyOf": [{"properties": {"x": {"type": "null"}}}, {"properties": {"y": {"type": "null"}}}],
    },
}


@pytest.mark.parametrize("name", VARIED)
def test_varied_schemas_hold(engine: Engine, name: str) -> None:
    holds(VARIED[name], fill(engine, VARIED[name]))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("nonsense", "JSON object"),
        ([], "at least one function"),
        ([{"type": "function", "function": {}}], "no name"),
        ({"type": "robot"}, "not valid"),
        ({"type": "object", "properties": 3}, "not valid"),
        ({"$ref": "#/$defs/nowhere"}, "nowhere"),
        ({"$ref": "https://example.org/schema"}, "another document"),
        ({"$ref": "#"}, "circle"),
        ({"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]}, "without end"),
        ({"enum": list(range(100))}, "100 values"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "widen"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "swap"),
        ({"type": "array", "items": {"type": "array", "minItems": 150, "items": {"type": "array"}}}, "maxItems"),
        ({"type": "string", "not": {"type": "string"}}, ""),
        ({"type": "string", "pattern": "^(([^x])+)+x$"}, ""),
        ({"type": "string", "pattern": "("}, "not valid"),
        (json.loads('{"minItems":1,"maxItems":1,"items":' * 40 + "{}" + "}" * 40), "deep"),
        (json.loads('{"not":' * 900 + "{}" + "}" * 900), "deep"),
        ({"type": "null", "not": {"$ref": "https://example.org/schema"}}, "leads nowhere"),
        ({"type": "object", "patternProperties": {"(a+)+$": {"type": "null"}}}, "patternProperties"),
    ],
)
def test_what_no_skeleton_can_be_is_one_sentence(engine: Engine, schema: object, said: str) -> None:
    if not said:  # possible to write, impossible to hold: reported, not raised
        found = fill(engine, schema)
        assert not found.valid
        assert found.problems
        return
    with pytest.raises(SchemaError, match=said) as caught:
        fill(engine, schema)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_only_the_failing_slot_is_masked_again_as_a_branch() -> None:
    schema = {
        "type": "object",
        "properties": {"kept": {"type": "string"}, "word": {"type": "string", "pattern": "^[a-z0-9 ]+$"}},
        "required": ["kept", "word"],
    }
    log = Log()
    engine = Engine(Settings(), load=lambda *_: JsonDenoiser(), models=frozenset({"pocket"}), on_end=log)
    try:
        found = next(
            found for seed in range(200) if (found := fill(engine, schema, seed=seed)).valid and found.slots[1].again
        )
    finally:
        engine.close()
    kept, word = found.slots
    assert kept.again == 0
    assert word.again >= 1
    family = [trace for trace, _ in log.ended]
    branch = family[-1]
    parent = next(trace for trace in family if trace.header.run_id == branch.header.parent_run_id)
    assert text_of(branch) == found.text
    assert f'"{kept.text}"' in text_of(parent)
    assert json.loads(text_of(parent))["word"] != found.value["word"]


def text_of(trace: Trace) -> str:
    assert trace.outcome is not None
    return trace.outcome.text


def test_drafts_are_not_logged_and_the_whole_is() -> None:
    log = Log()
    engine = Engine(Settings(), load=lambda *_: JsonDenoiser(), models=frozenset({"pocket"}), on_end=log)
    try:
        found = fill(engine, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
        log.wait(1)
    finally:
        engine.close()
    assert [text_of(trace) for trace, _ in log.ended] == [found.text]
    assert found.trace is log.ended[0][0]
    assert [name for name, _ in found.slots[0].compared] == ["1", "2", "3", "4", "6", "8", "12"]


def test_stopped_it_keeps_what_there_is_and_says_so(engine: Engine) -> None:
    filling = StructuredFilling(engine, VARIED["nested objects"], {"prompt": "x"})
    for number, _ in enumerate(filling):
        if number == 3:
            filling.cancel()
    assert filling.result is not None
    assert not filling.result.valid
    assert "stopped" in filling.result.problems[0]


def test_an_option_too_long_for_the_canvas_gives_way_to_one_that_fits() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x" * 90, "y"]}}, "required": ["a"]}
    with running(JsonDenoiser(), max_length=64) as engine:
        holds(schema, fill(engine, schema))


def test_a_schema_that_outgrows_the_canvas_keeps_what_was_filled_and_says_so() -> None:
    fields = {"a": {"type": "boolean"}, "b" * 90: {"type": "boolean"}}
    with running(JsonDenoiser(), max_length=64) as engine:
        found = fill(engine, {"type": "object", "properties": fields, "required": list(fields)})
        assert not found.valid
        assert "over this app's limit of 64" in found.problems[0]
        assert found.text.startswith('{"a": ')
        with pytest.raises(RequestError, match="limit of 64"):  # there is nothing to keep
            fill(engine, {"enum": ["x" * 90]})


def test_a_model_that_cannot_read_is_refused() -> None:
    with running(FakeDenoiser()) as engine, pytest.raises(RequestError, match="cannot read"):
        StructuredFilling(engine, {"type": "null"}, {"prompt": "a"})


def test_bad_settings_are_said_before_anything_runs(engine: Engine) -> None:
    with pytest.raises(RequestError, match="Temperature"):
        StructuredFilling(engine, {"type": "null"}, {"prompt": "a", "temperature": 9})
    with pytest.raises(RequestError, match="no model"):
        StructuredFilling(engine, {"type": "null"}, {"prompt": "a", "model": "nobody"})
    with pytest.raises(RequestError, match="Seed"):
        StructuredFilling(engine, {"type": "null"}, {"prompt": "a", "seed": "x"})


def test_the_embedded_model_fills_a_record_and_a_call(real: Engine) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "sky": {"enum": ["blue", "plaid"]},
        },
        "required": ["name", "age", "sky"],
    }
    found = fill(real, schema, prompt="Describe Anna, who is 30 years old, under a clear sky, as JSON.")
    holds(schema, found)
    assert found.value["sky"] == "blue"
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": fields}}}
        for name, fields in (("get_weather", {"city": {"enum": ["Paris", "Oslo"]}}), ("add", {"a": {"const": 1}}))
    ]
    call = fill(real, tools, prompt="What is the weather in Oslo? Answer with a call of a tool as JSON.")
    assert call.valid
    assert call.value["name"] in {"get_weather", "add"}
