"""Presets, schedules, dice and lock: the settings follow what is chosen, and grey out what has no say."""

from __future__ import annotations

from playwright.sync_api import expect

from playground.presets import DEFAULT_PRESET, PRESETS, Preset
from playground.ui.knobs import CONFIDENCES, CORRECTIONS, DECIDING, SCHEDULES, UNUSED, uses
from tests.browser.conftest import Visitor
from tests.browser.visiting import Visit

SCHEDULE_TITLES = {name: title for title, name in SCHEDULES}
CONFIDENCE_TITLES = {name: title for title, name in CONFIDENCES}
CORRECTION_TITLES = {name: title for title, name in CORRECTIONS}


def open_more(page: Visit) -> None:
    """The page builds what an accordion holds only once it is opened."""
    fold = page.page.locator("#more-settings button").first
    if "open" not in (fold.get_attribute("class") or ""):
        fold.click()


def expect_greyed(page: Visit, **chosen: str) -> None:
    """Sliders that the chosen settings leave no say cannot be moved and say why; the others can."""
    open_more(page)
    decided = {"schedule": ("steps", "threshold"), "correction": ("acceptance", "candidates")}
    for decides in chosen:
        for field in decided[decides]:
            for control in (page.number(field), page.page.locator(f"#{field} input[type=range]")):
                expect(control).to_be_enabled(enabled=uses(chosen, field))
            reason = expect(page.page.locator(f"#{field}"))
            if uses(chosen, field):
                reason.not_to_contain_text(UNUSED[decides].strip())
            else:
                reason.to_contain_text(UNUSED[decides].strip())


def deciding(preset: Preset) -> dict[str, str]:
    """The settings of a preset that grey out others."""
    return {name: preset.values[name] for name in DECIDING}


def test_presets_set_the_knobs(visit: Visitor) -> None:
    """Each sets every knob it names, says what it is for, and leaves no stale grey."""
    page = visit()
    selected = page.page.locator("#presets label.selected")
    expect(selected).to_have_text(PRESETS[DEFAULT_PRESET].title)
    expect_greyed(page, **deciding(PRESETS[DEFAULT_PRESET]))
    for preset in PRESETS.values():
        page.preset(preset.title)
        expect(page.page.locator("#presets")).to_contain_text(preset.sentence)
        for knob in ("length", "steps", "block", "threshold", "acceptance", "temperature"):
            expect(page.number(knob)).to_have_value(f"{preset.values[knob]:g}")
        expect(page.page.locator("#schedule input")).to_have_value(SCHEDULE_TITLES[preset.values["schedule"]])
        expect(page.page.locator("#confidence input")).to_have_value(CONFIDENCE_TITLES[preset.values["confidence"]])
        expect_greyed(page, **deciding(preset))


def test_own_settings_unselect_the_preset(visit: Visitor) -> None:
    """As soon as a knob is moved, no preset claims the settings; choosing one again takes them back."""
    page = visit()
    selected = page.page.locator("#presets label.selected")
    page.page.locator("#temperature input[type=range]").press("ArrowRight")
    expect(selected).to_have_count(0)
    expect(page.page.locator("#presets")).to_contain_text("Your own settings.")
    page.preset("Balanced")
    expect(page.number("temperature")).to_have_value("0")


def test_schedule_greys_out_what_it_does_not_use(visit: Visitor) -> None:
    """Steps and threshold follow the schedule that is chosen; values stay as they were."""
    page = visit()
    threshold = page.number("threshold").input_value()
    open_more(page)
    for schedule, title in SCHEDULE_TITLES.items():
        page.page.locator("#schedule input").click()
        page.page.get_by_role("option", name=title).click()
        expect(page.page.locator("#schedule input")).to_have_value(title)
        expect_greyed(page, schedule=schedule)
        expect(page.number("entropy-bound")).to_be_enabled(enabled=uses({"schedule": schedule}, "entropy_bound"))
        expect(page.number("threshold")).to_have_value(threshold)
    for correction, title in CORRECTION_TITLES.items():
        page.page.locator("#correction input").click()
        page.page.get_by_role("option", name=title).click()
        expect_greyed(page, correction=correction)
    expect(page.page.locator("#presets label.selected")).to_have_count(0)


def test_dice_and_lock(visit: Visitor) -> None:
    """The die draws a seed and locks it; a locked seed is used again, an unlocked one is not."""
    page = visit()
    page.page.get_by_role("button", name="Draw a seed").click()
    expect(page.lock).to_be_checked()
    expect(page.seed).not_to_have_value("")
    drawn = page.seed.input_value()
    page.ask("Roll.", length=1)
    page.run()
    page.wait_for_end()
    expect(page.seed).to_have_value(drawn)
    page.lock.uncheck()
    page.run()
    page.wait_for_end()
    expect(page.seed).not_to_have_value(drawn)
    expect(page.lock).not_to_be_checked()
