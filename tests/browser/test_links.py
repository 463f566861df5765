"""Links: copied, opened by somebody else, embedded without some controls; and broken ones, which are a sentence."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import expect

from playground.share import HIDEABLE, query_of
from tests.browser.conftest import Visitor
from tests.browser.launching import App
from tests.browser.test_hostile import HOSTILE, assert_nothing_ran
from tests.browser.visiting import Visit

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def copied(page: Visit, button: str, line: str) -> str:
    """Press a button, see it confirmed, and give what the clipboard then holds, which is what is shown."""
    page.page.locator(button).click()
    expect(page.page.locator(f"{line} .unmask-share-said")).to_contain_text("Link copied.")
    shown = page.page.locator(f"{line} .unmask-share-link").input_value()
    assert page.evaluate("navigator.clipboard.readText()") == shown
    return str(shown)


def query(link: str) -> str:
    """A link's query, to open it."""
    return f"?{urlsplit(link).query}"


def test_a_link_to_a_run_makes_it_again(app: App, visit: Visitor) -> None:
    """Somebody else opens it: nothing runs by itself; pressing Run gives the same text."""
    page = visit(permissions=CLIPBOARD)
    page.ask('A "quoted" & <odd> prompt: 100 % naïve? 漢字 …', length=10)
    page.set_number("temperature", 1)
    page.run()
    text = page.wait_for_end()
    trace = app.wait_for_run("odd")
    link = copied(page, "#export-link", "#export-line")
    assert link.startswith(f"{app.url}/?prompt=")

    other = visit(query=query(link))
    expect(other.prompt).to_have_value(trace.header.prompt)
    expect(other.message).to_have_text("These settings come from a link; press Run to start.")
    expect(other.number("length")).to_have_value("10")
    expect(other.number("temperature")).to_have_value("1")
    expect(other.seed).to_have_value(str(trace.header.seed))
    expect(other.lock).to_be_checked()
    expect(other.player).to_have_attribute("data-state", "empty")
    other.page.wait_for_timeout(1500)
    assert len(app.runs("odd")) == 1
    other.run()
    assert other.wait_for_end() == text
    expect(other.message).to_be_hidden()


def test_a_link_to_a_stored_run_shows_it_to_whoever_has_it(app: App, visit: Visitor) -> None:
    """Another visitor sees the run, but neither in their list nor so that they could delete it."""
    page = visit(permissions=CLIPBOARD)
    page.ask("A windmill to share.", length=4)
    page.run()
    text = page.wait_for_end()
    trace = app.wait_for_run("windmill")
    page.tab("Runs")
    page.choose("windmill")
    link = copied(page, "#runs-export-link", "#runs-export-line")
    assert link == f"{app.url}/?run={trace.header.run_id}"

    other = visit(query=query(link), reduced_motion="reduce")
    expect(other.page.locator(".um-prompt")).to_have_text("A windmill to share.")
    expect(other.final_text).to_have_text(text)
    expect(other.message).to_have_text("This run was opened from a link.")
    other.shows_step(len(trace.frames), trace)
    expect(other.prompt).to_have_value("A windmill to share.")
    other.tab("Runs")
    expect(other.page.locator("#runs-count")).to_have_text("0 runs.")
    assert len(app.runs("windmill")) == 1


def test_settings_are_shared_and_embedded_without_some_controls(visit: Visitor) -> None:
    """A teacher leaves out most; who opens the link has prompt and Run, and they work."""
    page = visit(permissions=CLIPBOARD)
    page.ask("Greet the class.", length=4)
    page.page.locator("#share button", has_text="Share these settings").click()
    for part in ("settings", "examples", "runs", "legend"):
        page.page.locator("#share-hide").get_by_label(HIDEABLE[part]).check()
    link = copied(page, "#share-copy", "#share-line")
    assert link.endswith("&embed=1&hide=examples,settings,legend,runs")

    other = visit(query=query(link), viewport={"width": 360, "height": 740})
    expect(other.prompt).to_have_value("Greet the class.")
    hidden = ("#settings", "#examples", "#heading", "#keys", "footer", ".um-legend")
    for part in hidden:
        expect(other.page.locator(part).first).to_be_hidden()
    expect(other.page.get_by_role("tab", name="Runs")).to_be_hidden()
    expect(other.page.locator(".um-figures")).to_be_visible()
    assert other.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
    other.run()
    other.wait_for_end()
    expect(other.canvas.locator(".um-cell")).to_have_count(4)


@pytest.mark.parametrize("part", HIDEABLE)
def test_each_part_can_be_left_out(visit: Visitor, part: str) -> None:
    """It is there on the page, and not on the embedded one."""
    where = {
        "knobs": "#length",
        "export": "#export",
        "chart": ".um-chart-box",
        "legend": ".um-legend",
        "figures": ".um-figures",
        "infill": "[role=tab][data-tab-id=infill]",
        "json": "[role=tab][data-tab-id=json]",
        "runs": "[role=tab][data-tab-id=runs]",
    }.get(part, f"#{part}")
    page = visit(reduced_motion="reduce")
    expect(page.page.locator(where).first).to_be_visible()
    page.page.goto(f"{page.page.url}?embed=1&hide={part}")
    expect(page.player).to_be_visible()
    expect(page.run_button).to_be_visible()
    expect(page.page.locator(where).first).to_be_hidden()


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("?prompt=Hi&length=eight", "Length must be a whole number"),
        ("?prompt=Hi&length=5000", "Length must be from 1 to"),
        ("?prompt=Hi&top_k=9000", "The link sets top k to 9000; this page goes from 0 to 500."),
        ("?prompt=Hi&model=gpt", "The link asks for the model 'gpt', which is not here."),
        ("?prompt=Hi&prompt=Ho", "The link gives prompt twice, 'Hi' and 'Ho'; take one out."),
        ("?length=5", "Prompt is missing"),
        ("?z=AAAA", "The link is damaged"),
        ("?run=0123456789abcdef01234567", "is not in the log here; it may have been deleted."),
        ("?run=<script>", "which no run is called"),
        ("?embed=1&hide=all", "The link hides 'all', which there is not"),
        (f"?prompt=Hi&schedule={quote(HOSTILE)}", "is unknown; choose 'even'"),
        (f"?run={quote(HOSTILE)}", "which no run is called"),
        ("?" + "&".join(f"a{number}=1" for number in range(200)), "The link has far too many parts"),
    ],
)
def test_a_broken_link_is_a_sentence(visit: Visitor, query: str, sentence: str) -> None:
    """And the page is as it would be without it."""
    page = visit(query=query, reduced_motion="reduce")
    expect(page.message).to_contain_text(sentence)
    expect(page.player).to_have_attribute("data-state", "ended")
    expect(page.page.locator(".um-badge")).to_have_text("Recording")
    expect(page.seed).to_have_value("")
    assert_nothing_ran(page)


def test_a_hostile_link_stays_text(app: App, visit: Visitor) -> None:
    """Its prompt is a value of the field and nothing else."""
    page = visit(query=f"?{query_of({'prompt': HOSTILE, 'length': 4, 'steps': 4})}&hide=<img src=x>&embed=1")
    expect(page.message).to_contain_text("The link hides '<img src=x>', which there is not")
    page = visit(query=f"?{query_of({'prompt': HOSTILE, 'length': 4, 'steps': 4, 'stop_penalty': 9.0})}")
    expect(page.prompt).to_have_value(HOSTILE)
    expect(page.message).to_contain_text("no control for stop penalty, so a run here goes without")
    assert_nothing_ran(page)
    page.run()
    page.wait_for_end()
    expect(page.page.locator(".um-prompt")).to_have_text(HOSTILE)
    assert_nothing_ran(page)


def test_a_long_link_arrives_whole(visit: Visitor) -> None:
    """Packed, at about the longest that is made."""
    words = " ".join(f"{number * 7919 % 99991:x}" for number in range(1150))
    page = visit(query=f"?{query_of({'prompt': words})}")
    expect(page.prompt).to_have_value(words)


def test_without_a_clipboard_the_link_is_there_to_be_copied(visit: Visitor) -> None:
    """The browser refuses both ways; the field is selected and says what to press."""
    page = visit(reduced_motion="reduce")
    page.evaluate(
        "(Object.defineProperty(navigator, 'clipboard', {value: undefined}), document.execCommand = () => false)"
    )
    page.page.locator("#export-link").click()
    said = page.page.locator("#export-line .unmask-share-said")
    expect(said).to_contain_text("Press Ctrl+C to copy the link.")
    field = page.page.locator("#export-line .unmask-share-link")
    expect(field).to_have_value(re.compile(r"^http://127\.0\.0\.1:\d+/\?prompt=Write%20a%20very%20short%20story"))
    assert page.evaluate("getSelection().toString()") == field.input_value()
