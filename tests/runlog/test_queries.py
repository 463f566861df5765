"""Lists, searches, exports and deletions give a visitor all of their own runs and nobody else's."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from playground.request import clean_text
from playground.runlog.problems import RunLogError
from playground.runlog.queries import merged
from playground.runlog.rows import COLUMNS, RunFilter, Sort, export_csv
from playground.runlog.store import RunStore
from playground.trace import Result, Trace
from tests.runlog.conftest import Open
from tests.samples import sample_row, sample_trace

EVERYONE = RunFilter(limit=None)


@pytest.fixture(scope="module")
def searched() -> Iterator[RunStore]:
    with RunStore.open("sqlite://") as store:
        yield store


def _fill(store: RunStore, count: int = 6) -> None:
    """Runs 0, 1, 2, … one minute apart, in turn of ann and bob, the later the longer."""
    for n in range(count):
        trace = sample_trace(
            str(n),
            f"Prompt number {n}",
            frames=n,
            model=("pocket", "other/model")[n % 3 == 0],
            created=f"2025-01-01T00:0{n}:00Z",
            result=(Result.FINISHED, Result.STOPPED)[n % 2],
        )
        store.save(trace, ("ann", "bob")[n % 2])
    assert store.flush()


def _ids(store: RunStore, **wanted: object) -> list[str]:
    return [row.id for row in store.list_runs(RunFilter(**wanted))]  # type: ignore[arg-type]


def test_filters(store: RunStore) -> None:
    _fill(store)
    assert _ids(store) == ["5", "4", "3", "2", "1", "0"]
    assert _ids(store, visitor="ann") == ["4", "2", "0"]
    assert _ids(store, visitor="") == []
    assert _ids(store, model="other/model", descending=False) == ["0", "3"]
    assert _ids(store, result="stopped", visitor="ann") == []
    assert _ids(store, search="NUMBER 3") == ["3"]
    assert _ids(store, search="  ") == ["5", "4", "3", "2", "1", "0"]
    assert _ids(store, search="word7") == ["4", "2"], "the text of a finished run is searched too"
    assert store.count(RunFilter(visitor="bob", limit=1)) == 3
    assert store.models("ann") == ["other/model", "pocket"]
    assert store.models("nobody") == []


def test_pages_neither_repeat_nor_skip(store: RunStore) -> None:
    _fill(store, 7)
    for sort in Sort:
        for descending in (True, False):
            whole = _ids(store, sort=sort, descending=descending, limit=None)
            pages = [_ids(store, sort=sort, descending=descending, limit=3, offset=at) for at in (0, 3, 6, 9)]
            assert [run_id for page in pages for run_id in page] == whole
            assert len(whole) == 7
    assert _ids(store, sort="forwards", limit=2) == ["6", "5"]
    # No first canvas: last in both directions.
    assert _ids(store, sort="first_canvas_seconds", limit=None)[-1] == "0"
    assert _ids(store, sort="first_canvas_seconds", descending=False, limit=None)[-1] == "0"


@pytest.mark.parametrize("sort", list(Sort))
@pytest.mark.parametrize("descending", [True, False])
def test_rows_of_two_places_merge_as_the_database_sorts(store: RunStore, sort: Sort, descending: bool) -> None:
    _fill(store)
    rows = store.list_runs(RunFilter(limit=None))
    wanted = RunFilter(sort=sort, descending=descending, limit=4, offset=1)
    assert merged(rows, wanted) == store.list_runs(wanted)


@pytest.mark.parametrize("wildcard", ["%", "_", "\\", "/", "/%", "100%", "a_c", "'", "*", "?", "[a-c]", "${x}", "<b>"])
def test_search_takes_wildcards_literally(store: RunStore, wildcard: str) -> None:
    store.save(sample_trace("with", f"before {wildcard} after"), "ann")
    store.save(sample_trace("without", "before abc after 1000 aXc"), "ann")
    assert store.flush()
    assert _ids(store, search=wildcard) == ["with"]


@given(prompt=st.text(min_size=1, max_size=40), data=st.data())
@example(prompt="İstanbul ẞ", data=None)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_part_of_a_prompt_finds_it(searched: RunStore, prompt: str, data: st.DataObject | None) -> None:
    if not clean_text(prompt).strip():
        prompt += "x"
    start, end = (0, len(prompt)) if data is None else sorted(data.draw(st.tuples(*[st.integers(0, len(prompt))] * 2)))
    searched.save(sample_trace("only", prompt), "ann")
    assert searched.flush()
    part = clean_text(prompt)[start:end]
    assert _ids(searched, search=part) == ["only"]
    shouted = "".join(c.upper() if c.isascii() else c for c in part)
    assert _ids(searched, search=shouted) == ["only"]


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "x" * 200_000])
def test_questions_may_hold_anything(store: RunStore, text: str) -> None:
    _fill(store, 1)
    assert _ids(store, model=text) == _ids(store, result=text) == []
    assert store.load_trace(text, text) is None
    assert store.delete([text], text) == 0
    assert _ids(store, search=text) in ([], ["0"])


@pytest.mark.parametrize(
    "wrong", [{"sort": "visitor; DROP"}, {"limit": 0}, {"offset": -1}, {"offset": 2**70}, {"x": 1}]
)
def test_a_wrong_filter_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RunFilter(**wrong)  # type: ignore[arg-type]


def test_a_visitor_opens_and_deletes_only_their_own(store: RunStore) -> None:
    _fill(store)
    assert store.load_trace("0", "bob") is None
    assert store.load_trace("0", "") is None
    assert store.load_trace("0", "ann") is not None
    assert store.load_trace("0", None) is not None
    assert store.load_trace("no such run", None) is None
    assert store.delete(["0", "1", "1", "no such run"], "bob") == 1
    assert _ids(store) == ["5", "4", "3", "2", "0"]
    assert store.delete(["0", "2", "3"], None) == 3
    assert _ids(store) == ["5", "4"]
    assert store.delete([], None) == 0


def test_thousands_of_ids_fit(store: RunStore) -> None:
    _fill(store)
    assert store.delete([str(n) for n in range(40_000)], None) == 6


def test_after_closing_nothing_is_deleted(path: Path, open_store: Open) -> None:
    store = open_store(path)
    store.close()
    with pytest.raises(RunLogError, match=r"closed.*restart"):
        store.delete(["1"], None)


def test_export_of_traces_holds_every_match_and_reads_back(store: RunStore) -> None:
    _fill(store)
    texts = list(store.export_jsonl(RunFilter(visitor="ann", limit=1)))
    assert [Trace.from_lines(text).header.run_id for text in texts] == ["4", "2", "0"]
    assert all(text.endswith("\n") for text in texts)


def test_export_leaves_out_what_is_deleted_meanwhile(store: RunStore) -> None:
    _fill(store)
    texts = store.export_jsonl(EVERYONE)
    first = next(texts)
    store.delete(["4"], None)
    assert [Trace.from_lines(text).header.run_id for text in (first, *texts)] == ["5", "3", "2", "1", "0"]


def test_export_of_rows_is_a_table_of_every_match(store: RunStore) -> None:
    _fill(store)
    store.save(sample_trace("x", 'two\nlines, "quotes" and 👩‍👩‍👧 שלום'), "ann")
    assert store.flush()
    text = "".join(store.export_csv(RunFilter(visitor="ann", limit=1)))
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["id"] for row in rows] == ["x", "4", "2", "0"]
    assert rows[0]["prompt"] == 'two\nlines, "quotes" and 👩‍👩‍👧 שלום'
    assert rows[0]["created"] == "2025-06-01T12:00:00.000Z"
    assert "visitor" not in rows[0]


@pytest.mark.parametrize("start", list("=+-@\t\r\n"))
def test_export_starts_no_formula(start: str) -> None:
    evil = f'{start}HYPERLINK("http://x","y")'
    row = sample_row(prompt=evil, text=evil, message=evil, model=evil, model_name=evil, temperature=-0.5)
    heading, line = export_csv([row])
    assert heading == ",".join(COLUMNS) + "\r\n"
    (cells,) = csv.DictReader(io.StringIO(heading + line, newline=""))
    assert all(cells[name] == "'" + evil for name in ("prompt", "text", "message", "model", "model_name"))
    assert cells["temperature"] == "-0.5"


@given(st.text(max_size=50))
def test_export_keeps_harmless_text(text: str) -> None:
    heading, line = export_csv([sample_row(prompt=text)])
    (cells,) = csv.DictReader(io.StringIO(heading + line, newline=""))
    assert cells["prompt"] in (text, "'" + text)
    assert not cells["prompt"].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_a_damaged_trace_is_named_and_does_not_stop_an_export(path: Path, open_store: Open) -> None:
    store = open_store(path)
    _fill(store, 3)
    with store._database.writer.begin() as connection:
        connection.exec_driver_sql("UPDATE traces SET lines = x'00' WHERE run_id = '1'")
        connection.exec_driver_sql("UPDATE traces SET lines = substr(lines, 1, 40) WHERE run_id = '2'")
    for run_id in ("1", "2"):
        with pytest.raises(RunLogError, match=rf"trace of run {run_id} is damaged.*delete the run"):
            store.load_trace(run_id, None)
    assert [Trace.from_lines(text).header.run_id for text in store.export_jsonl(EVERYONE)] == ["0"]
