"""A link carries the whole request; what is broken or means harm is refused with one sentence."""

from __future__ import annotations

import base64
import contextlib
import json
import zlib
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.request import (
    MAX_SEED,
    Confidence,
    Correction,
    GenerationRequest,
    RequestError,
    Schedule,
    StopRule,
    clean_text,
    parse_request,
)
from playground.share import (
    DAMAGED,
    DEFAULTS,
    HIDEABLE,
    LONGEST_QUERY,
    LONGEST_READABLE,
    Link,
    embed_query,
    query_of,
    read_link,
    run_query,
)
from playground.start import blank_part, text_part

PROMPT = "Why is the sky blue?"
requests = st.builds(
    GenerationRequest,
    prompt=st.text(min_size=1, max_size=300).filter(lambda text: bool(clean_text(text).strip())),
    model=st.text(min_size=1, max_size=20),
    length=st.integers(1, 1024),
    steps=st.integers(1, 1024),
    block=st.integers(0, 1024),
    schedule=st.sampled_from(Schedule),
    confidence=st.sampled_from(Confidence),
    threshold=st.floats(0, 1),
    entropy_bound=st.floats(0, 20),
    correction=st.sampled_from(Correction),
    acceptance=st.floats(0, 1),
    temperature=st.floats(0, 2),
    top_p=st.floats(0.001, 1),
    top_k=st.integers(0, 1_000_000),
    stop_rule=st.sampled_from(StopRule),
    stop_penalty=st.floats(0, 100),
    end_at_stop=st.booleans(),
    seed=st.none() | st.integers(0, MAX_SEED),
    deadline=st.none() | st.floats(0.1, 86_400),
    reproducible=st.booleans(),
)


def asked(request: GenerationRequest) -> dict[str, Any]:
    """A request as a trace's header has it."""
    return request.model_dump(mode="json")


def followed(query: str) -> Link:
    """What a browser would hand over of an address with this query."""
    return read_link(parse_qsl(urlsplit(f"http://127.0.0.1/?{query}").query, keep_blank_values=True))


@given(requests)
def test_a_link_gives_the_request_back(request: GenerationRequest) -> None:
    try:
        query = query_of(asked(request))
    except RequestError:
        assert len(request.prompt) > 200
        return
    link = followed(query)
    assert link.values is not None
    assert parse_request(link.values) == request


@given(requests)
def test_a_link_survives_being_pasted(request: GenerationRequest) -> None:
    """Only characters that mean nothing to mail programs, and no full stop at its end."""
    try:
        query = query_of(asked(request))
    except RequestError:
        return
    assert len(query) <= LONGEST_QUERY
    assert query.isascii()
    assert not set(query) & set(" \"'<>`{}|\\^\n[]()#")
    assert not query.endswith(".")


def test_small_requests_stay_readable() -> None:
    request = asked(GenerationRequest(prompt=PROMPT, length=32, seed=5, schedule=Schedule.COSINE))
    assert query_of(request) == "prompt=Why%20is%20the%20sky%20blue%3F&length=32&schedule=cosine&seed=5"
    assert query_of({"prompt": "Stop."}) == "prompt=Stop%2E"


def test_long_ones_are_packed_and_the_longest_refused() -> None:
    long = asked(GenerationRequest(prompt="Tell me about rain, and about rivers. " * 200))
    query = query_of(long)
    assert query.startswith("z=")
    assert len(query) < LONGEST_READABLE
    link = followed(query)
    assert link.values is not None
    assert link.values["prompt"] == long["prompt"]
    wild = "".join(chr(0x4E00 + (index * 7919) % 20_000) for index in range(8_000))
    with pytest.raises(RequestError, match="too much for a link"):
        query_of(asked(GenerationRequest(prompt=wild)))


def test_what_links_leave_out_is_what_it_was() -> None:
    """If this fails, a default was changed: old links mean the old one, so leave this table alone and test less."""
    fields = GenerationRequest.model_fields
    assert {name: fields[name].default for name in DEFAULTS} == dict(DEFAULTS)


def test_what_a_request_gained_later_is_carried_too() -> None:
    """Lists and all; where a run came from is nobody's business."""
    request = GenerationRequest(
        prompt="a", start=(text_part("Once, “"), blank_part(4)), banned=("moon", "sun, too"), one_line=True
    )
    query = query_of({**asked(request), "parent_run_id": "0123456789abcdef01234567", "parent_step": 3})
    assert "parent" not in query
    assert "0123456789" not in query
    link = followed(query)
    assert link.values is not None
    assert parse_request(link.values) == request
    assert query_of(asked(GenerationRequest(prompt="a"))) == "prompt=a"
    assert followed("parent_run_id=abc&parent_step=3") == Link()


def test_a_run_by_its_id() -> None:
    assert followed(run_query("7940f0f7bc5c26bbc7ed5d50")) == Link(run_id="7940f0f7bc5c26bbc7ed5d50")


def test_what_an_embedded_page_leaves_out() -> None:
    assert embed_query(["runs", "settings", "nonsense"]) == "embed=1&hide=settings,runs"
    assert embed_query([]) == "embed=1"
    assert followed("embed=1&hide=settings,runs&prompt=a").hidden == ("settings", "runs")
    assert followed("hide=settings&prompt=a").hidden == ()
    assert followed("embed=1").values is None


def test_names_of_others_are_left_alone() -> None:
    assert followed("__theme=dark&utm_source=mail&fbclid=x&logs=container") == Link()
    assert followed("") == Link()


def packed(body: bytes) -> str:
    """Bytes as a packed link has them."""
    return "z=" + base64.urlsafe_b64encode(zlib.compress(body)).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("prompt=a&length=abc", "Length must be a whole number from 1 to 1024; 'abc' was sent."),
        ("prompt=a&length=NaN", "Length must be a whole number"),
        ("prompt=a&temperature=Infinity", "Temperature must be a finite number"),
        ("prompt=a&temperature=1e999", "Temperature must be a finite number"),
        ("prompt=a&length=9999999999", "Length must be from 1 to 1024"),
        ("prompt=a&length=" + "[" * 2000, "Length must be a whole number"),
        ("prompt=a&schedule=<script>", "Schedule '<script>' is unknown"),
        ("prompt=a&seed=-1", "Seed must be from 0"),
        ("prompt=a&end_at_stop=maybe", "End at stop"),
        ("length=5", "Prompt is missing"),
        ("prompt=", "The prompt is empty"),
        ("prompt=%00%00", "The prompt is empty"),
        ("prompt=a&prompt=b", "The link gives prompt twice, 'a' and 'b'; take one out."),
        ("run=../../etc/passwd", "which no run is called"),
        ("run=", "which no run is called"),
        ("run=" + "a" * 200, "which no run is called"),
        ("embed=1&hide=everything", "hides 'everything', which there is not"),
        ("z=", DAMAGED),
        ("z=%00", DAMAGED),
        ("z=AAAA", DAMAGED),
        (packed(b"[1]"), DAMAGED),
        (packed(b"nonsense"), DAMAGED),
        (packed(b"[" * 100_000), DAMAGED),
        (packed(b'{"prompt": "' + b"a" * 5_000_000 + b'"}'), DAMAGED),
        (packed(b'{"prompt": "abc"}')[:-4], DAMAGED),
        (packed(b'{"prompt": "a", "visitor": "me"}'), "There is no setting called 'visitor'"),
        (packed(b'{"prompt": "a", "length": NaN}'), "Length must be"),
        (packed(b'{"prompt": ["a"]}'), "Prompt must be text"),
    ],
)
def test_a_broken_link_is_refused_with_one_sentence(query: str, sentence: str) -> None:
    with pytest.raises(RequestError) as refusal:
        parse_request(followed(query).values or {})
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


names = st.sampled_from([*GenerationRequest.model_fields, "z", "run", "hide", "embed"])


@given(st.text(max_size=60), st.dictionaries(names, st.text(max_size=30)))
def test_any_query_gives_values_or_a_sentence(noise: str, query: dict[str, str]) -> None:
    """And no other exception."""
    for items in (query.items(), {**query, "z": noise}.items()):
        with contextlib.suppress(RequestError):
            parse_request(read_link(items).values or {})


def test_every_part_that_can_be_hidden_has_a_rule() -> None:
    from playground.settings import ROOT

    styles = (ROOT / "static" / "share.css").read_text("utf-8")
    script = (ROOT / "static" / "share.js").read_text("utf-8")
    for name in HIDEABLE:
        assert f'[data-hide~="{name}"]' in styles
    assert json.loads(script.split("const HIDEABLE = ")[1].split(";")[0].replace(",\n]", "]")) == list(HIDEABLE)
