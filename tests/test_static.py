"""The viewer's pure functions, tested in Node by tests/static/*.test.mjs."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from playground.settings import ROOT


def test_node_tests_pass() -> None:
    node = shutil.which("node")
    if node is None:
        if os.environ.get("UNMASK_REQUIRE_NODE") == "1":
            pytest.fail("install Node.js 20 or newer (apt install nodejs)")
        pytest.skip("install Node.js to test the viewer's functions")
    files = sorted(str(path) for path in (ROOT / "tests" / "static").glob("*.test.mjs"))
    assert files
    done = subprocess.run([node, "--test", *files], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
