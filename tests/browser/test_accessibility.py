"""axe-core on every tab, the inspector, the editor, the sheet of keys, the embedded page and the exported player."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from playground.export.html import trace_html
from playground.labs import examples
from playground.settings import ROOT
from tests.browser.conftest import Visitor
from tests.browser.launching import PATIENCE
from tests.browser.visiting import Visit

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
FINDINGS = """
async () => {
  // What still fades in would be measured half-way.
  for (const motion of document.getAnimations()) {
    try { motion.finish(); } catch { motion.cancel(); }
  }
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return {
    rules: found.passes.length,
    bad: found.violations
      .filter((one) => ["serious", "critical"].includes(one.impact))
      .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target.join(" ")}: ${node.html.slice(0, 160)}`)),
  };
}
"""
SIZES = {"wide": (1280, 900), "narrow": (360, 740)}


@pytest.fixture(scope="module", autouse=True)
def axe() -> str:
    """The script, installed beforehand."""
    if not AXE.is_file():
        reason = "install axe-core (npm install)"
        if os.environ.get("UNMASK_REQUIRE_NODE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return AXE.read_text("utf-8")


def assert_sound(page: Page, axe: str) -> None:
    """No serious finding, and nothing wider than the screen."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate(FINDINGS)
    assert found["rules"] > 5
    assert found["bad"] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def settled(page: Visit) -> None:
    """The recording that greets has been played, or would change while it is looked at."""
    expect(page.final_text).to_be_visible()


def inspector(page: Visit) -> None:
    page.scrubber.fill("9")
    page.canvas.locator(".um-cell").nth(3).click()
    expect(page.page.locator("#viewer .um-inspector")).to_contain_text("Position 3")


def editor(page: Visit) -> None:
    page.page.locator("#viewer").get_by_role("button", name="Edit from here").click()
    page.canvas.locator(".um-cell").nth(1).click()
    page.page.locator("#viewer .um-editor").get_by_role("button", name="Mask again").click()
    expect(page.canvas.locator(".um-mask").first).to_be_visible()


def keys(page: Visit) -> None:
    page.page.locator("#viewer").get_by_role("button", name="Keys").click()
    expect(page.page.get_by_role("dialog")).to_be_visible()


def colours(page: Visit) -> None:
    page.page.locator("#viewer select").first.select_option("order")


def everything_open(page: Visit) -> None:
    page.page.locator("#more-settings button").first.click()
    expect(page.page.locator("#confidence")).to_be_visible()


def tab(name: str) -> Callable[[Visit], None]:
    return lambda page: page.tab(name)


def runs(page: Visit) -> None:
    page.ask("What is snow?", length=6)
    page.run()
    page.wait_for_end()
    page.tab("Runs")
    page.rows().first.click()
    expect(page.page.locator("#runs-plot .js-plotly-plot")).to_be_visible()


STATES: dict[str, Callable[[Visit], None]] = {
    "generate": lambda _: None,
    "settings": everything_open,
    "inspector": inspector,
    "colours": colours,
    "editor": editor,
    "keys": keys,
    "infill": tab("Infill"),
    "json": tab("JSON"),
    "runs": runs,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_serious_finding(visit: Visitor, axe: str, state: str, theme: str, size: str) -> None:
    width, height = SIZES[size]
    page = visit(query=f"?__theme={theme}", reduced_motion="reduce", viewport={"width": width, "height": height})
    settled(page)
    STATES[state](page)
    picture(page.page, f"{state}-{theme}-{size}")
    assert_sound(page.page, axe)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_embedded_page_has_none(visit: Visitor, axe: str, theme: str) -> None:
    page = visit(query=f"?__theme={theme}&embed=1&hide=examples,settings,runs", reduced_motion="reduce")
    settled(page)
    assert_sound(page.page, axe)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_an_exported_player_has_none(browser: Browser, tmp_path: Path, axe: str, theme: str, size: str) -> None:
    (path := tmp_path / "player.html").write_text(trace_html(examples.load()[0].trace), "utf-8")
    width, height = SIZES[size]
    context = browser.new_context(
        offline=True, reduced_motion="reduce", color_scheme=theme, viewport={"width": width, "height": height}
    )
    context.set_default_timeout(PATIENCE * 1000)
    try:
        page = context.new_page()
        page.goto(path.as_uri())
        page.locator(".um-scrubber").fill("9")
        page.locator(".um-canvas .um-cell").nth(3).click()
        picture(page, f"player-{theme}-{size}")
        assert_sound(page, axe)
    finally:
        context.close()


def picture(page: Page, name: str) -> None:
    """For people who want to look as well: set UNMASK_PICTURES to a folder."""
    if folder := os.environ.get("UNMASK_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
