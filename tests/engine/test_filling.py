"""Templates filled by the real model: lengths are found, candidates ranked, and what is kept is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from playground.engine.engine import Engine
from playground.engine.filling import Filling
from playground.infill.markup import parse
from playground.request import RequestError
from tests.fakes import FakeDenoiser, Log, running

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


def done(filling: Filling) -> Filling:
    for _ in filling:
        pass
    return filling


def test_the_best_scored_length_is_taken_and_what_is_outside_is_kept(engine: Engine) -> None:
    template = parse("She forgot her[[1-3]] at home, so she could not open the door.")
    filling = done(Filling(engine, template, {"seed": 1, "correction": "none"}))
    lengths = {found.lengths: found.score for found in filling.tries}
    assert set(lengths) == {(1,), (2,), (3,)}
    assert tuple(filling.lengths) == max(lengths, key=lengths.__getitem__)
    best = filling.best
    assert best.text == template.filled(best.blanks)
    assert best.score == max(lengths.values())
    assert all(math.isfinite(score) and score < 0 for score in lengths.values())


@pytest.mark.parametrize(
    "text",
    ["[[4]]", "[[2]] is blue.", "The sky is[[2]]", "a[[1]][[1]]b", "x[[0]]y[[1]]", "def f(x):\n\treturn[[2]]\n"],
)
def test_blanks_anywhere(engine: Engine, text: str) -> None:
    template = parse(text)
    best = done(Filling(engine, template, {"seed": 1, "correction": "none"})).best
    assert best.failed == ""
    assert len(best.blanks) == len(template.blanks)
    assert best.text == template.filled(best.blanks)
    for blank, words in zip(template.blanks, best.blanks, strict=True):
        assert (words == "") == (blank.high == 0)


def test_several_candidates_are_ranked_and_none_is_there_twice(engine: Engine) -> None:
    filling = done(
        Filling(engine, parse("My favourite animal is a[[3]] that"), {"seed": 5, "correction": "none"}, keep=4)
    )
    texts = [found.text for found in filling.candidates]
    assert len(texts) == len(set(texts)) >= 2
    scores = [found.score for found in filling.candidates]
    assert scores == sorted(scores, reverse=True)


def test_a_model_that_cannot_read_is_scored_by_its_own_confidence() -> None:
    with running(FakeDenoiser()) as engine:
        filling = done(Filling(engine, parse("ab[[1-2]]c"), {"prompt": "abc", "seed": 1}))
        assert {found.lengths for found in filling.tries} == {(1,), (2,)}
        assert filling.best.trace.outcome is not None
        assert filling.best.trace.outcome.score is None
        assert filling.best.score <= 0


def test_what_is_wrong_is_said_before_anything_runs(engine: Engine) -> None:
    with pytest.raises(RequestError, match="Temperature"):
        Filling(engine, parse("a[[1]]"), {"temperature": 9})
    with pytest.raises(RequestError, match="no model"):
        Filling(engine, parse("a[[1]]"), {"model": "nobody"})


def test_what_is_shown_is_rescored_and_logged_and_not_a_draft() -> None:
    log = Log()
    engine = Engine(on_end=log)
    try:
        best = done(Filling(engine, parse("She forgot her[[1-2]] at home."), {"seed": 1})).best
        log.wait(1)
    finally:
        engine.close()
    assert not best.draft
    assert [trace for trace, _ in log.ended] == [best.trace]
    assert len(best.trace.frames) > sum(best.lengths)  # forwards that rescore


def test_stopped_among_drafts_nothing_more_begins_and_the_best_is_logged() -> None:
    log = Log()
    with running(FakeDenoiser(), on_end=log) as engine:
        filling = Filling(engine, parse("a[[1-2]]b[[1-2]]c"), {"prompt": "abc", "seed": 1})
        doing = []
        for progress in filling:
            doing.append(progress.doing)
            if progress.tries:
                filling.cancel()
        log.wait(1)
    assert set(doing) == {"trying lengths of blank 1"}
    assert filling.best.draft
    assert math.isfinite(filling.best.score)
    assert [trace for trace, _ in log.ended] == [filling.best.trace]


def test_stopped_at_once_there_is_still_something_to_show() -> None:
    with running(FakeDenoiser()) as engine:
        filling = Filling(engine, parse("a[[1-2]]b"), {"prompt": "abc", "seed": 1})
        for _ in filling:
            filling.cancel()
    assert filling.best.text.startswith("a")
    assert filling.candidates
