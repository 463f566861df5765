"""The house stands as designed: rooms import only downward, libraries stay in their rooms, code is clean."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.settings import ROOT

MODULES = [*sorted((ROOT / "playground").rglob("*.py")), ROOT / "app.py"]
LIBRARIES = {
    "gradio": ("playground/ui/", "app.py"),
    "sqlalchemy": ("playground/runlog/",),
    "alembic": ("playground/runlog/",),
    "transformers": ("playground/denoisers/", "playground/training/"),
    "torch": (
        "playground/sampling/",
        "playground/denoisers/",
        "playground/engine/",
        "playground/labs/",
        "playground/training/",
    ),
}
FLOORS = {
    "request": 0,  # settings, on the same floor, takes its bounds
    "trace": 1,
    "settings": 1,
    "presets": 1,
    "sampling": 2,
    "denoisers": 2,
    "infill": 2,
    "runlog": 2,
    "export": 2,
    "engine": 3,
    "charts": 3,
    "training": 3,
    "api": 4,
    "labs": 4,
    "ui": 5,
    "cli": 5,
    "__main__": 6,
    "app": 6,
}
LONGEST = 400


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} imports relatively"
            module = node.module or ""
            # "from playground import charts" imports a room by its name.
            yield from ([f"playground.{alias.name}" for alias in node.names] if module == "playground" else [module])


def room_of(module: str) -> str:
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "playground" else package


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_libraries_stay_in_their_rooms(path: Path) -> None:
    for module in imports(path):
        allowed = LIBRARIES.get(module.split(".")[0])
        assert allowed is None or name_of(path).startswith(allowed), f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_rooms_import_only_downward(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    own = parts[1] if parts[0] == "playground" else parts[0]
    if own == "__init__":
        return  # the package's door opens the engine, lazily
    for module in imports(path):
        if module.startswith("playground.") and (room := room_of(module)) in FLOORS:
            assert room == own or FLOORS[room] < FLOORS[own], f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_modules_say_what_they_are_for_and_stay_short(path: Path) -> None:
    text = path.read_text("utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{name_of(path)} has no docstring"
    assert text.count("\n") <= LONGEST, f"{name_of(path)} is over {LONGEST} lines; split it by concept"


@pytest.mark.parametrize("command", ["ruff check .", "ruff format --check .", "mypy"])
def test_checkers_pass(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
