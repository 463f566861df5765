"""Everything by keyboard: what matters can be reached, and one sees where one is."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visitor

FOCUSED = """
() => {
  const focused = document.activeElement;
  const ring = [focused, ...(focused.closest("label") ? [focused.closest("label")] : [])].some((element) => {
    const style = getComputedStyle(element);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 && Number(style.opacity) > 0;
  });
  const place = focused.closest("#theme, #prompt, #run, #presets, .um-scrubber, #length, #seed, #dice, #lock");
  return { name: place?.id || place?.className || "", tag: focused.tagName, ring };
}
"""
WANTED = ["theme", "prompt", "run", "um-scrubber", "presets", "length", "seed", "dice", "lock"]


def test_tab_reaches_everything_and_shows_where(visit: Visitor) -> None:
    """From the top of the page, in reading order; each stop wears an outline."""
    page = visit()
    expect(page.scrubber).to_be_enabled()
    reached: list[str] = []
    for _ in range(80):
        page.page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused["tag"] == "BODY":
            break
        assert focused["ring"], focused
        if focused["name"] and focused["name"] not in reached:
            reached.append(focused["name"])
    assert reached == WANTED


def test_a_run_by_keyboard_alone(visit: Visitor) -> None:
    """Type, choose a preset with the space bar, run with Enter, step with the arrows."""
    page = visit()
    page.prompt.focus()
    page.page.keyboard.press("Control+A")
    page.page.keyboard.type("Keys only.")
    page.page.locator("#presets input[value=fast]").focus()
    page.page.keyboard.press("Space")
    expect(page.page.locator("#presets label.selected")).to_have_text("Fast")
    expect(page.number("length")).to_have_value("32")
    page.number("length").focus()
    page.page.keyboard.press("Control+A")
    page.page.keyboard.type("6")
    page.page.keyboard.press("Tab")
    page.run_button.focus()
    page.page.keyboard.press("Enter")
    expect(page.page.locator(".um-prompt")).to_have_text("Keys only.")
    page.wait_for_end()
    expect(page.canvas.locator(".um-cell")).to_have_count(6)
    page.page.keyboard.press("Home")
    expect(page.step_label).to_contain_text("Step 0 ")
    page.page.keyboard.press("ArrowRight")
    expect(page.step_label).to_contain_text("Step 1 ")
