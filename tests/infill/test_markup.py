"""Blanks as people write them; what is outside is kept byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.infill.markup import AUTO_LENGTHS, MOST_LENGTHS, Blank, MarkupError, Template, cut, parse

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="["), min_size=1)
BLANK = st.one_of(
    st.just(Blank()),
    st.integers(0, 1024).map(lambda n: Blank(n, n)),
    st.tuples(st.integers(0, 1024), st.integers(0, 1024)).map(lambda pair: Blank(min(pair), max(pair))),
)


@given(st.lists(st.tuples(TEXT, st.lists(BLANK, min_size=1, max_size=3)), min_size=1), st.booleans(), st.booleans())
def test_a_template_written_down_is_read_back(parts: list[tuple[str, list[Blank]]], first: bool, last: bool) -> None:
    pieces: list[str | Blank] = [Blank(2, 2)] if first else []
    for text, blanks in parts:
        pieces += [text, *blanks]
    if last:
        pieces.append("end")
    template = Template(tuple(pieces))
    assert parse(str(template)) == template
    fills = [f"<{i}>" for i in range(len(template.blanks))]
    assert template.filled(fills) == "".join(
        piece if isinstance(piece, str) else fills[[j for j, p in enumerate(pieces) if not isinstance(p, str)].index(i)]
        for i, piece in enumerate(pieces)
    )


@given(st.text(), st.text())
def test_what_is_outside_a_blank_is_kept_byte_for_byte(before: str, behind: str) -> None:
    template = parse(f"{before}[[3]]{behind}")
    texts = [piece for piece in template.pieces if isinstance(piece, str)]
    assert len("".join(texts)) <= len(before) + len(behind)
    if "[[" not in before + behind and not before.endswith("["):
        assert texts == [text for text in (before, behind) if text]


@pytest.mark.parametrize(
    ("text", "blanks"),
    [
        ("a[[ ]]b", [Blank()]),
        ("[[]]", [Blank()]),
        ("[[8]]", [Blank(8, 8)]),
        ("[[ 4 - 12 ]]x", [Blank(4, 12)]),
        ("[[0]]x", [Blank(0, 0)]),
        ("[[1]][[2]]", [Blank(1, 1), Blank(2, 2)]),
        ("a[[x]] [[-3]] [[1.5]] [ [2]] [[3]]", [Blank(3, 3)]),
        ("m[[1]][0] = m[i[[2]]]", [Blank(1, 1), Blank(2, 2)]),
        ("[[[5]]]", [Blank(5, 5)]),
    ],
)
def test_what_is_a_blank_and_what_is_text(text: str, blanks: list[Blank]) -> None:
    assert list(parse(text).blanks) == blanks
    assert str(parse(text)).replace(" ", "") == text.replace(" ", "").replace("[[]]", "[[]]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no blank", "no blank"),
        ("", "no blank"),
        ("[[9-3]]", "[[3-9]]"),
        ("[[2000]]", "1,024"),
        ("[[1-9999]]", "1,024"),
    ],
)
def test_blanks_that_make_no_sense_are_explained(text: str, said: str) -> None:
    with pytest.raises(MarkupError, match=r"\w") as caught:
        parse(text)
    assert said in str(caught.value)
    assert str(caught.value).endswith(".")


@given(BLANK)
def test_lengths_to_try_are_in_range_and_not_too_many(blank: Blank) -> None:
    lengths = blank.lengths
    assert list(lengths) == sorted(set(lengths))
    assert 1 <= len(lengths) <= MOST_LENGTHS
    if blank.low is None or blank.high is None:
        assert lengths == AUTO_LENGTHS
    else:
        assert (lengths[0], lengths[-1]) == (blank.low, blank.high)


@given(st.text(max_size=40), st.data())
def test_stretches_become_blanks_and_the_rest_stays(text: str, data: st.DataObject) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=6)))
    spans = [(a, b, Blank(1, 1)) for a, b in zip(places[::2], places[1::2], strict=False)]
    template = cut(text, spans)
    assert len(template.blanks) == len(spans)
    assert template.filled([text[a:b] for a, b, _ in spans]) == text


@pytest.mark.parametrize("spans", [[(0, 9)], [(-1, 2)], [(3, 2)], [(0, 3), (2, 4)]])
def test_stretches_outside_or_overlapping_are_refused(spans: list[tuple[int, int]]) -> None:
    with pytest.raises(MarkupError, match="blank"):
        cut("hello", [(a, b, Blank()) for a, b in spans])
