"""Text that would like to be code: from a prompt, and from a trace. It is shown as it is, and nothing of it runs."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import expect

from playground.trace import Candidate, Guess, Trace
from tests.browser.conftest import Visitor
from tests.browser.launching import App
from tests.browser.visiting import Visit
from tests.samples import sample_trace

HOSTILE = (
    '<script>window.pwned=1</script><img src=x onerror="window.pwned=1">${Object.assign(window,{pwned:1})} '
    "{{constructor}} <|im_end|> <empty_output> 😀 שלום مرحبا"
)
CONTROL = "bell \x07, escape \x1b[31m, NUL \x00, delete \x7f, end"
CLEANED = "bell , escape [31m, NUL , delete , end"


def assert_nothing_ran(page: Visit) -> None:
    """Nothing took its chance, nor was any element made of what was written."""
    assert page.evaluate("window.pwned === undefined")
    assert page.evaluate("document.querySelectorAll('[onerror], img[src=x]').length") == 0


def test_hostile_prompt_stays_text(app: App, visit: Visitor) -> None:
    """Shown literally in the viewer, in the list, and when it is opened again after a reload."""
    page = visit()
    page.ask(HOSTILE, length=4)
    page.run()
    page.wait_for_end()
    shown = page.page.locator(".um-prompt")
    assert shown.text_content() == HOSTILE
    assert_nothing_ran(page)
    assert app.wait_for_run("<script>window.pwned").header.prompt == HOSTILE

    page.page.reload()
    page.tab("Runs")
    expect(page.rows()).to_contain_text('<script>window.pwned=1</script><img src=x onerror="window')
    page.rows().click()
    about = page.page.locator("#runs-about")
    expect(about).to_contain_text('Chosen: “<script>window.pwned=1</script><img src=x onerror="window.pwned=1">${Objec')
    assert_nothing_ran(page)
    page.page.locator("#runs-open").click()
    expect(shown).to_have_text(HOSTILE)
    assert_nothing_ran(page)
    page.tab("Runs")
    expect(page.page.locator("#runs-open")).to_be_disabled()
    page.rows().click()
    page.page.locator("#runs-restore").click()
    expect(page.prompt).to_have_value(HOSTILE)
    assert_nothing_ran(page)


def test_control_characters_are_taken_out(app: App, visit: Visitor) -> None:
    """They mean nothing to a model; the rest of the prompt is run and stored."""
    page = visit()
    page.ask("", length=2)
    page.prompt.evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input', {bubbles: true})); }", CONTROL
    )
    page.run()
    page.wait_for_end()
    assert page.page.locator(".um-prompt").text_content() == CLEANED
    assert app.wait_for_run("bell , escape").header.prompt == CLEANED


def test_hostile_tokens_stay_text(app: App, visit: Visitor) -> None:
    """A stored run whose tokens, guesses, alternatives and messages are markup is looked at, step by step."""
    page = visit()
    page.ask("Whose page is this?", length=2)
    page.run()
    page.wait_for_end()
    visitor = app.visitor_of(app.wait_for_run("Whose page is this?").header.run_id)
    with app.store() as store:
        store.save(hostile_trace(), visitor)
        assert store.flush()
    page.tab("Runs")
    page.rows().filter(has_text="A trace with teeth").click()
    expect(page.page.locator("#runs-about")).to_contain_text("A trace with teeth")
    assert_nothing_ran(page)
    page.page.locator("#runs-open").click()
    trace = hostile_trace()
    last = len(trace.frames)
    expect(page.page.locator(".um-prompt")).to_have_text("A trace with teeth")
    assert page.cells() == [HOSTILE] * trace.header.length
    expect(page.final_text).to_have_text(HOSTILE)
    expect(page.page.locator(".um-fact").first).to_have_text(HOSTILE)
    expect(page.page.locator(".um-status-message")).to_have_text(HOSTILE)
    for k in range(last + 1):
        page.scrubber.fill(str(k))
        expect(page.step_label).to_have_text(f"Step {k} of {last}")
        page.canvas.locator(".um-cell").nth(-1).hover()
        assert_nothing_ran(page)
    page.canvas.locator(".um-cell").first.click()
    expect(page.page.locator(".um-inspector")).to_contain_text("onerror")
    assert_nothing_ran(page)


def hostile_trace() -> Trace:
    """A finished run in which every text that can be markup is."""
    plain = sample_trace(
        "hostile-1", "A trace with teeth", message=HOSTILE, text=HOSTILE, model_name=HOSTILE, note=HOSTILE
    )
    frames = [
        replace(
            frame,
            changes=tuple(
                replace(change, text=HOSTILE, alternatives=(Candidate(1, HOSTILE, 0.9), Candidate(3, HOSTILE, 0.05)))
                for change in frame.changes
            ),
            guesses=tuple(Guess(guess.position, HOSTILE, 0.5) for guess in frame.guesses),
        )
        for frame in plain.frames
    ]
    header = replace(plain.header, device=HOSTILE, stop_ids=(1,))
    return Trace(header, frames, plain.outcome)
