"""One app and one Chromium for all tests here, and a fresh context, closely watched, for each page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.browser.launching import App, started
from tests.browser.visiting import Visit

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]

Visitor = Callable[..., Visit]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that open a page are the ones that need a browser."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and "visit" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """The app, its model loaded, its run log empty at first."""
    with started(tmp_path_factory.mktemp("app")) as app:
        app.wait_for_model("ready")
        yield app


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Ends with this package: its event loop would be in the way of tests that start one."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A Chromium that was installed beforehand; nothing is downloaded."""
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if found is None:
        reason = "install Chromium (apt install chromium)"
        if os.environ.get("UNMASK_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_OPTIONS)
    yield browser
    browser.close()


@pytest.fixture
def visit(browser: Browser, app: App) -> Iterator[Visitor]:
    """Opens the page as a new visitor, as often as it is called; in the end nothing may have gone wrong on any."""
    visits: list[Visit] = []

    def open_page(at: App = app, query: str = "", **context: Any) -> Visit:
        new = Visit(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context}), f"{at.url}/{query}")
        visits.append(new)
        return new

    yield open_page
    for one in visits:
        one.close()
    assert [problem for one in visits for problem in one.problems] == []
