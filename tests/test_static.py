"""The viewer's own tests, which need Node and no browser."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from playground.settings import ROOT


def test_viewer_in_node() -> None:
    """`node --test` on every file in tests/static/."""
    node = shutil.which("node")
    if node is None:
        reason = "install Node (apt install nodejs)"
        if os.environ.get("UNMASK_REQUIRE_NODE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    # One by one, because Node 22 and later no longer take a folder.
    files = [str(path) for path in sorted((ROOT / "tests" / "static").glob("*.test.mjs"))]
    assert files
    done = subprocess.run([node, "--test", *files], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
