"""Differences between two texts: nothing is lost, and what is marked does differ."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from playground.ui.branches import comparison_of, marked
from tests.samples import sample_row


@given(st.text(), st.text())
def test_stretches_joined_are_the_texts(left: str, right: str) -> None:
    for text, side in zip((left, right), marked(left, right), strict=True):
        assert "".join(words for words, _ in side) == text


@given(st.text())
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert all(not differs for side in marked(text, text) for _, differs in side)


def test_words_that_differ_are_marked() -> None:
    left, right = marked("the cat sat here", "the dog sat here now")
    assert left == [("the", False), (" cat", True), (" sat here", False)]
    assert right == [("the", False), (" dog", True), (" sat here", False), (" now", True)]


def test_what_goes_to_the_page_is_inert() -> None:
    row = sample_row(text="<script>alert(1)</script>", created=datetime(2025, 1, 1, tzinfo=UTC))
    sides = comparison_of(row, row)
    assert "<" not in sides
    assert json.loads(sides)[0]["parts"] == [["<script>alert(1)</script>", False]]
