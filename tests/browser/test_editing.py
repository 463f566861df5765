"""The canvas is questioned, held, edited and gone on from; branches are kept and compared."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from playground.runlog.rows import RunFilter
from playground.trace import Trace
from tests.browser.conftest import Visitor
from tests.browser.launching import App, wait_until
from tests.browser.visiting import Visit


def cell(page: Visit, at: int) -> Locator:
    return page.page.locator("#viewer .um-canvas .um-cell").nth(at)


def button(page: Visit, name: str) -> Locator:
    return page.page.locator("#viewer .um-editor").get_by_role("button", name=name, exact=True)


def at_step(page: Visit, k: int) -> None:
    page.scrubber.fill(str(k))
    expect(page.step_label).to_have_text(re.compile(f"^Step {k} of"))


def test_a_branch_keeps_what_is_pinned_and_fills_what_was_masked(app: App, visit: Visitor) -> None:
    page = visit()
    page.ask("Name a big animal of the sea.", length=10)
    page.run()
    page.wait_for_end()
    parent = app.wait_for_run("animal of the sea")
    button(page, "Edit from here").click()
    whole = page.cells()
    cell(page, 0).click()
    button(page, "Pin").click()
    cell(page, 2).click()
    cell(page, 4).click(modifiers=["Shift"])
    button(page, "Mask again").click()
    expect(page.canvas.locator(".um-mask")).to_have_count(3)
    cell(page, 6).click()
    page.page.locator("#viewer .um-editor-text").fill(" really")
    button(page, "Put").click()
    expect(cell(page, 6)).to_have_text(" really")

    button(page, "Undo").click()
    expect(cell(page, 6)).to_have_text(whole[6] or "")
    button(page, "Redo").click()
    expect(cell(page, 6)).to_have_text(" really")
    button(page, "Continue from here").click()
    expect(page.page.locator("#viewer .um-facts")).to_contain_text("goes on from step")
    page.wait_for_end()

    branch = wait_until("the branch", lambda: branch_of(app, parent.header.run_id))
    assert branch.header.parent_step == len(parent.frames)
    start, end = branch.canvas_at(0), branch.canvas_at(len(branch.frames))
    assert [at for at, shown in enumerate(start) if shown.token_id is None] == [2, 3, 4]
    assert set(branch.header.pinned) == {0, 6}
    assert "really" in end[6].text
    for k in range(len(branch.frames) + 1):
        now = branch.canvas_at(k)
        assert [now[at] for at in branch.header.pinned] == [start[at] for at in branch.header.pinned]
    for k in (0, len(branch.frames)):
        at_step(page, k)
        page.shows_step(k, branch)

    page.tab("Runs")
    page.rows().first.click()
    sides = page.page.locator("#branches-sides .unmask-side")
    expect(sides).to_have_count(2)
    expect(page.page.locator("#branches-sides mark").first).to_be_visible()


def branch_of(app: App, run_id: str) -> Trace | None:
    """The logged run that goes on from another."""
    with app.store() as store:
        for row in store.list_runs(RunFilter()):
            if row.parent_run_id == run_id:
                return store.load_trace(row.id, None)
    return None


def test_a_held_run_waits_and_goes_on(app: App, visit: Visitor) -> None:
    page = visit()
    page.ask("Tell a long story about a slow river.", length=60)
    page.set_number("steps", 60)
    page.run()
    page.wait_for_steps(2)
    button(page, "Hold the run").click()
    expect(button(page, "Let it go on")).to_be_visible()
    page.page.wait_for_timeout(1500)
    held = page.evaluate("document.querySelectorAll('#viewer .um-canvas .um-mask').length")
    page.page.wait_for_timeout(1500)
    assert page.evaluate("document.querySelectorAll('#viewer .um-canvas .um-mask').length") == held > 0
    button(page, "Let it go on").click()
    page.wait_for_end()
    assert app.wait_for_run("slow river").outcome is not None


def test_leaving_the_editor_leaves_the_canvas(visit: Visitor) -> None:
    page = visit()
    page.ask("What is rain?", length=6)
    page.run()
    page.wait_for_end()
    before = page.cells()
    button(page, "Edit from here").click()
    cell(page, 1).click()
    button(page, "Mask again").click()
    button(page, "Longer").click()
    expect(page.canvas.locator(".um-cell")).to_have_count(14)
    button(page, "Leave").click()
    expect(page.canvas.locator(".um-cell")).to_have_count(6)
    assert page.cells() == before
