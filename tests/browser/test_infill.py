"""The Infill tab: blanks are filled, everything else stays, and what is wrong is said."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.browser.visiting import Visit


def fill(page: Visit, text: str) -> str:
    """Fill a text, quickly, and give the result."""
    page.tab("Infill")
    page.page.locator("#infill-text textarea").fill(text)
    page.page.locator("#infill-fill").click()
    expect(page.page.locator("#infill-result textarea")).not_to_have_value("")
    expect(page.page.locator("#infill-fill")).to_be_visible()
    return page.page.locator("#infill-result textarea").input_value()


def quick(page: Visit) -> None:
    page.tab("Infill")
    page.page.locator("#infill-rescore input").uncheck()


def test_blanks_are_filled_and_one_can_be_filled_again(visit: Visitor) -> None:
    page = visit()
    quick(page)
    result = fill(page, "My dog[[1-2]] in the garden, and my cat[[3]] in the house.")
    assert result.startswith("My dog")
    assert " in the garden, and my cat" in result
    assert result.endswith(" in the house.")
    expect(page.page.locator("#infill-viewer .um-pinned").first).to_be_visible()

    first = result[len("My dog") : result.index(" in the garden")]
    page.page.locator("#infill-which input").click()
    page.page.get_by_role("option", name="2").click()
    page.page.locator("#infill-refill").click()
    expect(page.page.locator("#infill-stop")).to_be_visible()
    expect(page.page.locator("#infill-fill")).to_be_visible()
    again = page.page.locator("#infill-result textarea").input_value()
    assert again.startswith(f"My dog{first} in the garden, and my cat")
    assert again.endswith(" in the house.")


def test_the_selection_becomes_a_blank(visit: Visitor) -> None:
    page = visit()
    page.tab("Infill")
    field = page.page.locator("#infill-text textarea")
    field.fill("one two three")
    field.evaluate("(field) => field.setSelectionRange(4, 7)")
    page.page.locator("#infill-blank").click()
    expect(field).to_have_value("one [[ ]] three")


def test_several_candidates_can_be_chosen_from(visit: Visitor) -> None:
    page = visit()
    quick(page)
    page.page.locator("#infill-keep input[type=number]").fill("3")
    page.page.locator("#infill-keep input[type=number]").press("Tab")
    fill(page, "The best thing about summer is[[4]].")
    choices = page.page.locator("#infill-candidates label")
    expect(choices.first).to_be_visible()
    words = choices.last.inner_text().split()[1:]
    choices.last.click()
    page.page.wait_for_function(
        "(word) => document.querySelector('#infill-result textarea').value.includes(word)", arg=words[0]
    )


@pytest.mark.parametrize(
    ("text", "said"), [("no blank here", "no blank"), ("[[9-3]]", "[[3-9]]"), ("[[900]]", "limit")]
)
def test_what_is_wrong_is_said_on_the_page(visit: Visitor, text: str, said: str) -> None:
    page = visit()
    page.tab("Infill")
    page.page.locator("#infill-text textarea").fill(text)
    page.page.locator("#infill-fill").click()
    expect(page.page.locator("#infill-message")).to_contain_text(said)
    expect(page.page.locator("#infill-fill")).to_be_visible()
