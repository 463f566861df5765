"""Branches find their parents and their children, on either database."""

from __future__ import annotations

from playground.runlog.store import RunStore
from tests.samples import sample_trace


def tree(store: RunStore, run_id: str, visitor: str | None = "me") -> list[tuple[int, str]]:
    return [(depth, row.id) for depth, row in store.family(run_id, visitor)]


def test_a_tree_is_the_same_from_each_of_its_runs(store: RunStore) -> None:
    made = {"a": None, "b": "a", "c": "a", "d": "b", "e": "d", "x": None}
    for second, (run_id, parent) in enumerate(made.items()):
        store.save(sample_trace(run_id, parent=parent, created=f"2025-06-01T12:00:0{second}.000Z"), "me")
    store.flush()
    whole = [(0, "a"), (1, "b"), (2, "d"), (3, "e"), (1, "c")]
    for run_id in "abcde":
        assert tree(store, run_id) == whole
    assert tree(store, "x") == [(0, "x")]
    assert tree(store, "nobody") == []
    (row,) = [row for _, row in store.family("b", "me") if row.id == "b"]
    assert (row.parent_run_id, row.parent_step) == ("a", 2)


def test_others_runs_and_deleted_ones_end_a_tree(store: RunStore) -> None:
    store.save(sample_trace("a"), "somebody")
    store.save(sample_trace("b", parent="a"), "me")
    store.save(sample_trace("c", parent="b"), "me")
    store.save(sample_trace("d", parent="b"), "somebody")
    store.flush()
    assert tree(store, "c") == [(0, "b"), (1, "c")]
    assert tree(store, "a") == []
    assert tree(store, "a", None) == [(0, "a"), (1, "b"), (2, "c"), (2, "d")]
    store.delete(["b"], "me")
    assert tree(store, "c") == [(0, "c")]


def test_a_ring_of_parents_ends(store: RunStore) -> None:
    store.save(sample_trace("a", parent="b"), "me")
    store.save(sample_trace("b", parent="a"), "me")
    store.save(sample_trace("c", parent="c"), "me")
    store.flush()
    assert sorted(run_id for _, run_id in tree(store, "a")) == ["a", "b"]
    assert tree(store, "c") == [(0, "c")]
