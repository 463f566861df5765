"""Take the README's pictures from the real app: `python docs/pictures/take.py` (needs Chromium and requirements-dev).

Starts the app on a free port with an empty log, makes a few runs, and photographs each tab, the inspector, the editor,
branches, dark colours and a phone.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_ready(url: str) -> None:
    for _ in range(240):
        try:
            with urllib.request.urlopen(f"{url}/healthz") as answer:
                if b'"ready"' in answer.read():
                    return
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit("The app did not become ready within two minutes.")


def open_page(browser: Browser, url: str, *, dark: bool = False, width: int = 1280, height: int = 1010) -> Page:
    page = browser.new_context(viewport={"width": width, "height": height}, device_scale_factor=1.5).new_page()
    page.goto(f"{url}/?__theme={'dark' if dark else 'light'}")
    page.wait_for_selector(".unmask-player")
    return page


def ask(page: Page, prompt: str, preset: str, *, steps: int | None = None) -> None:
    page.click(f"#presets label:has-text('{preset}')")
    page.wait_for_timeout(600)  # the preset's own steps are set by then
    if steps is not None:
        page.fill("#steps input[type=number]", str(steps))
        page.press("#steps input[type=number]", "Tab")
    page.fill("#prompt textarea", prompt)
    page.click("#run")
    page.wait_for_selector("#stop:visible")


def finish(page: Page) -> None:
    page.wait_for_selector("#run:visible", timeout=180_000)


def tab(page: Page, name: str) -> None:
    page.click(f"[role=tab][data-tab-id={name}]")


def cell(page: Page, at: int) -> Locator:
    return page.locator("#viewer .um-canvas .um-cell").nth(at)


def click(page: Page, name: str) -> None:
    page.locator("#viewer .um-editor").get_by_role("button", name=name, exact=True).click()


def shoot(page: Page, name: str) -> None:
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(600)  # what moves has come to rest
    page.screenshot(path=HERE / f"{name}.png")


def take_token_editor_and_branch(browser: Browser, url: str) -> None:
    page = open_page(browser, url, height=1400)
    ask(page, "Name a big animal of the sea, and say what it eats.", "Balanced")
    finish(page)
    page.locator("#viewer .um-scrubber").fill("5")
    cell(page, 3).click()
    shoot(page, "token")
    page.locator("#viewer .um-scrubber").press("End")
    click(page, "Edit from here")
    cell(page, 0).click()
    click(page, "Pin")
    cell(page, 6).click()
    cell(page, 12).click(modifiers=["Shift"])
    click(page, "Mask again")
    shoot(page, "editor")
    click(page, "Continue from here")
    page.wait_for_selector("#stop:visible")
    finish(page)
    tab(page, "runs")
    page.locator("#runs-table [data-row='0'][data-col='1']").last.click()
    page.locator("#branches-sides .unmask-side").nth(1).wait_for()
    page.locator("#branches-sides").scroll_into_view_if_needed()
    page.wait_for_timeout(1500)
    page.screenshot(path=HERE / "branches.png")


def take_step_counts(browser: Browser, url: str) -> None:
    """One prompt on 48 positions in 12, 24 and 48 steps, for good, and in as many as the correction needs."""
    page = open_page(browser, url)
    for steps in (12, 24, 48, None):
        ask(page, "Why do cats purr?", "Balanced" if steps is None else "Too few steps", steps=steps)
        finish(page)
        card = page.locator("#viewer .um-canvas")
        card.screenshot(path=HERE / f"steps-{steps or 'corrected'}.png")


def take_infill(browser: Browser, url: str) -> None:
    page = open_page(browser, url)
    tab(page, "infill")
    page.fill(
        "#infill-text textarea", "She forgot her[[1-2]] at home, so she went back to[[2]] it before the train left."
    )
    page.click("#infill-fill")
    page.wait_for_selector("#infill-stop:visible")
    page.wait_for_selector("#infill-fill:visible", timeout=120_000)
    shoot(page, "infill")


def take_json(browser: Browser, url: str) -> None:
    page = open_page(browser, url)
    tab(page, "json")
    page.fill("#json-schema textarea", (ROOT / "docs" / "person.json").read_text(encoding="utf-8"))
    page.fill("#json-prompt textarea", "Anna is 30 and very happy. Describe her as JSON.")
    page.click("#json-fill")
    page.wait_for_selector("#json-stop:visible")
    page.wait_for_selector("#json-fill:visible", timeout=120_000)
    shoot(page, "json")


def take(browser: Browser, url: str) -> None:
    take_token_editor_and_branch(browser, url)
    take_step_counts(browser, url)
    take_infill(browser, url)
    take_json(browser, url)
    page = open_page(browser, url)
    ask(page, "Write a very short story about a tiny dragon.", "Balanced")
    page.wait_for_timeout(5000)
    page.screenshot(path=HERE / "generate-light.png")
    finish(page)
    for prompt, preset in (("Why do cats purr?", "Fast"), ("Give me three tips to sleep better.", "Careful")):
        ask(page, prompt, preset)
        finish(page)
    tab(page, "runs")
    page.locator("#runs-table [data-row='0'][data-col='1']").last.click()
    page.wait_for_selector("#runs-plot .js-plotly-plot")
    page.wait_for_timeout(2500)
    page.screenshot(path=HERE / "runs-light.png")
    dark = open_page(browser, url, dark=True)
    dark.wait_for_timeout(4000)
    dark.screenshot(path=HERE / "generate-dark.png")
    phone = open_page(browser, url, width=360, height=800)
    phone.wait_for_timeout(3000)
    phone.evaluate("document.querySelector('#watch').scrollIntoView()")
    phone.wait_for_timeout(500)
    phone.screenshot(path=HERE / "phone.png")


def main() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as data:
        environment = {**os.environ, "UNMASK_DATA": data, "GRADIO_SERVER_PORT": str(port)}
        app = subprocess.Popen([sys.executable, "app.py"], cwd=ROOT, env=environment)
        try:
            wait_until_ready(url)
            with sync_playwright() as driver:
                chromium = shutil.which("chromium") or shutil.which("google-chrome")
                browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
                take(browser, url)
                browser.close()
        finally:
            app.send_signal(signal.SIGTERM)
            app.wait(30)


if __name__ == "__main__":
    main()
