"""Narrow screens, dark and light, and people who want nothing to move."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from playground.labs import examples
from tests.browser.conftest import Visitor
from tests.browser.visiting import Visit

FAINT_TEXTS = """
() => {
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ancestors = (element) => (element ? [...ancestors(element.parentElement), element] : []);
  const faint = [];
  let count = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const words = walker.currentNode.data.trim();
    if (!words || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("script, style, svg, :disabled, .um-announcer, [aria-hidden='true']")) continue;
    // A greyed control may be faint: that is how it says that it has no say now.
    if (element.closest(".block")?.querySelector("input:disabled")) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    let back = [255, 255, 255];
    let opacity = 1;
    for (const around of ancestors(element)) {
      const style = getComputedStyle(around);
      opacity *= Number(style.opacity);
      back = over(parse(style.backgroundColor), back);
    }
    const [r, g, b, a] = parse(getComputedStyle(element).color);
    const fore = over([r, g, b, a * opacity], back);
    const [low, high] = [light(fore), light(back)].sort((one, other) => one - other);
    const contrast = (high + 0.05) / (low + 0.05);
    count += 1;
    if (contrast < 4.5) faint.push(`${words.slice(0, 40)} (${element.className}): ${contrast.toFixed(2)}`);
  }
  return { count, faint };
}
"""


def assert_readable(page: Visit) -> None:
    """Every visible text stands out enough (WCAG 1.4.3)."""
    found = page.evaluate(FAINT_TEXTS)
    assert found["count"] > 20
    assert found["faint"] == []


def background(page: Visit) -> list[int]:
    """The page's colour."""
    return list(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out(visit: Visitor, theme: str) -> None:
    """Both themes, both tabs, with a run on the canvas."""
    page = visit(query=f"?__theme={theme}", reduced_motion="reduce")
    expect(page.final_text).to_be_visible()
    assert (sum(background(page)) > 384) == (theme == "light")
    assert_readable(page)
    # Half-way, so that there are masks with guesses.
    page.scrubber.fill("20")
    expect(page.step_label).to_contain_text("Step 20 ")
    page.page.locator("#prompt").click()
    assert_readable(page)
    page.tab("Runs")
    expect(page.page.locator("#runs-count")).to_have_text("0 runs.")
    assert_readable(page)


def test_theme_switch_is_remembered(visit: Visitor) -> None:
    """The button turns the page dark, and it is dark again after a reload."""
    page = visit(color_scheme="light")
    page.page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.page.locator("body")).to_have_class("dark")
    assert sum(background(page)) < 384
    page.page.reload()
    expect(page.run_button).to_be_visible()
    expect(page.page.locator("body")).to_have_class("dark")
    page.page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.page.locator("body")).not_to_have_class("dark")


def test_narrow_screen(visit: Visitor) -> None:
    """At 360 px nothing sticks out, and Run can be seen and pressed."""
    page = visit(viewport={"width": 360, "height": 740}, has_touch=True)
    overflow = "document.scrollingElement.scrollWidth - innerWidth"
    expect(page.run_button).to_be_in_viewport()
    expect(page.page.locator(".um-badge")).to_be_attached()
    assert page.evaluate(overflow) <= 0
    page.ask("A small screen.", length=4)
    page.run_button.tap()
    expect(page.page.locator(".um-prompt")).to_have_text("A small screen.")
    page.wait_for_end()
    assert page.evaluate(overflow) <= 0
    page.page.get_by_role("tab", name="Runs").tap()
    expect(page.rows()).to_have_count(1)
    page.rows().tap()
    expect(page.page.locator("#runs-open")).to_be_enabled()
    assert page.evaluate(overflow) <= 0


def test_reduced_motion_shows_the_end_at_once(visit: Visitor) -> None:
    """The recording is there to its last step and does not play by itself."""
    page = visit(reduced_motion="reduce")
    trace = examples.load()[0].trace
    expect(page.canvas.locator(".um-cell")).to_have_count(trace.header.length)
    page.shows_step(len(trace.frames), trace)
    expect(page.page.locator(".um-play")).to_have_attribute("aria-label", "Play")
