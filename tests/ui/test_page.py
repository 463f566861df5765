"""The page as it is put together: what it offers beside itself, and what it fetches."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from playground.runlog.store import RunStore
from playground.settings import Settings
from playground.ui.components import STATIC_URL
from playground.ui.page import STATIC, build_page, launch_options, routes
from tests.fakes import FakeDenoiser, running


@pytest.fixture
def client() -> Iterator[TestClient]:
    """The routes beside the page, without the page."""
    with running(FakeDenoiser()) as engine, TestClient(Starlette(routes=routes(engine))) as client:
        engine.ready("pocket")
        yield client


def test_health(client: TestClient) -> None:
    """One word, the version, and where the model stands."""
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    assert answer.json()["model"]["state"] == "ready"


def test_scripts_and_styles_are_asked_for_each_time(client: TestClient) -> None:
    """Or an update of the app would meet a viewer from last week."""
    for name in ("mount.js", "player.js", "player.css", "page.css", "page.js"):
        answer = client.get(f"/{STATIC_URL}/{name}")
        assert answer.status_code == 200, name
        assert answer.headers["cache-control"] == "no-cache"
    assert client.get(f"/{STATIC_URL}/../../app.py").status_code == 404
    assert client.get(f"/{STATIC_URL}/none.js").status_code == 404


def test_nothing_is_fetched_from_elsewhere() -> None:
    """No address of another machine in what the page is made of, SVG's name excepted."""
    for path in sorted(STATIC.iterdir()):
        text = path.read_text("utf-8")
        assert set(re.findall(r"https?://[\w./-]+", text)) <= {"http://www.w3.org/2000/svg"}, path.name


def test_page_is_built_without_warnings(tmp_path: Path) -> None:
    """Warnings are errors here; every event finds its components, and the public API is one call."""

    async def build() -> dict[str, object]:
        with running(FakeDenoiser()) as engine, RunStore.open(f"sqlite:///{tmp_path}/runs.sqlite3") as store:
            page = build_page(engine, store, Settings(data=tmp_path))
            assert launch_options(engine)["ssr_mode"] is False
            return dict(page.get_api_info()["named_endpoints"])

    assert list(asyncio.run(build())) == ["/generate"]
