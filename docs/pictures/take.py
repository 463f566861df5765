"""Take the README's pictures from the real app: `python docs/pictures/take.py` (needs Chromium and requirements-dev).

Starts the app on a free port with an empty log, makes a few runs, and photographs light, dark, Runs and a phone.
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

from playwright.sync_api import Browser, Page, sync_playwright

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


def ask(page: Page, prompt: str, preset: str) -> None:
    page.click(f"#presets label:has-text('{preset}')")
    page.fill("#prompt textarea", prompt)
    page.click("#run")
    page.wait_for_selector("#stop:visible")


def finish(page: Page) -> None:
    page.wait_for_selector("#run:visible", timeout=180_000)


def take(browser: Browser, url: str) -> None:
    page = open_page(browser, url)
    ask(page, "Write a very short story about a tiny dragon.", "Balanced")
    page.wait_for_timeout(5000)
    page.screenshot(path=HERE / "generate-light.png")
    finish(page)
    for prompt, preset in (("Why do cats purr?", "Fast"), ("Give me three tips to sleep better.", "Careful")):
        ask(page, prompt, preset)
        finish(page)
    page.click("[role=tab][data-tab-id=runs]")
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
