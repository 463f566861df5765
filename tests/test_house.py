"""The floors of the house: who may import whom, who may know what; and that the linters are content."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.settings import ROOT

FLOORS: dict[str, int] = {
    "core": 1,
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
    "app": 6,
}
"""Rooms and their floors; a room imports from lower floors and from itself."""

ROOM_OF: dict[str, str] = {
    "playground.request": "core",
    "playground.trace": "core",
    "playground.typed": "core",
    "playground.settings": "core",
    "playground.presets": "core",
    "playground.share": "core",
    "playground.start": "core",
    "playground.frames": "core",
    "playground.__main__": "cli",
    "app": "app",
}
"""Modules whose room is not the second part of their name."""

MAY_KNOW: dict[str, set[str]] = {
    "torch": {"sampling", "denoisers", "engine", "labs", "training"},
    "gradio": {"ui", "app"},
    "gradio_client": {"ui", "app"},
    "sqlalchemy": {"runlog"},
    "alembic": {"runlog"},
    "transformers": {"denoisers", "training"},
}
"""Packages that only some rooms may know."""

DOOR = "playground"
"""The package's own module. It may reach for the engine, inside its functions only; all may ask its version."""
DOOR_NAMES = {"__version__"}
MOST_LINES = 400


def modules() -> dict[str, Path]:
    """Every module of the app by name; migration scripts are data."""
    found = {"app": ROOT / "app.py"} if (ROOT / "app.py").is_file() else {}
    for path in sorted((ROOT / "playground").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if "migrations" not in parts:
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def room_of(module: str) -> str:
    """The room of a module of the app."""
    if module in ROOM_OF:
        return ROOM_OF[module]
    return module.split(".")[1]


def imports(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, bool]]:
    """Every name imported, wherever it stands, `if TYPE_CHECKING` included; and whether inside a function.

    `from a import b` gives a.b; a relative import is made absolute; a name given to `import_module` counts too.
    """
    lazy = {
        id(inside)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inside in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            stem = node.module or ""
            if node.level:
                parents = module.split(".") if is_package else module.split(".")[:-1]
                stem = ".".join([*parents[: len(parents) - node.level + 1], *([stem] if stem else [])])
            names = [f"{stem}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            value = node.args[0].value
            names = [str(value)] if called in {"import_module", "__import__"} else []
        else:
            continue
        for name in names:
            yield name, id(node) in lazy


def imports_of(module: str) -> list[tuple[str, bool]]:
    """Names that a module of the app imports."""
    path = MODULES[module]
    return list(imports(ast.parse(path.read_text("utf-8")), module, path.name == "__init__.py"))


def complaint(module: str, name: str, lazy: bool) -> str | None:
    """What is wrong with `module` importing `name`."""
    room = None if module == DOOR else room_of(module)
    top, *rest = name.split(".")
    if top in MAY_KNOW and room not in MAY_KNOW[top]:
        return f"{module} may not know {top}"
    if top not in ("playground", "app") or (top == "playground" and (not rest or rest[0] in DOOR_NAMES)):
        return None
    if top == "playground" and f"playground.{rest[0]}" not in MODULES:
        return f"{module} takes {rest[0]} through the package's door; import it from its own room"
    target = room_of(name if top == "app" else _longest(name))
    if room is None:
        allowed = target == "engine" and (lazy or name.startswith("playground.engine.pipeline"))
    else:
        allowed = target == room or FLOORS[target] < FLOORS[room]
    return None if allowed else f"{module} ({room}) imports {name} ({target})"


def _longest(name: str) -> str:
    """`playground.trace.Trace` -> `playground.trace`."""
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        if ".".join(parts[:end]) in MODULES:
            return ".".join(parts[:end])
    return ".".join(parts[:2])


# --- the house ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_room_may(module: str) -> None:
    complaints = [complaint(module, name, lazy) for name, lazy in imports_of(module)]
    assert [c for c in complaints if c] == []


@pytest.mark.parametrize("module", [m for m in MODULES if m != DOOR])
def test_every_module_has_a_room(module: str) -> None:
    assert room_of(module) in FLOORS


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is_for_and_is_not_too_long(module: str) -> None:
    text = MODULES[module].read_text("utf-8")
    assert ast.get_docstring(ast.parse(text)), f"{module} has no docstring"
    assert text.count("\n") <= MOST_LINES, f"{module} is longer than {MOST_LINES} lines; split it"


def test_the_door_loads_nothing_heavy() -> None:
    code = (
        "import sys, playground, playground.request, playground.trace, playground.settings; "
        "print(sorted({'torch', 'gradio', 'transformers', 'sqlalchemy', 'plotly'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "arguments",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_the_linters_are_content(arguments: list[str]) -> None:
    result = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


# --- the test itself sees what it should -------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("playground.sampling.sampler", "import playground.trace", False),
        ("playground.sampling.sampler", "from playground.denoisers import base", True),
        ("playground.sampling.sampler", "from playground.sampling import schedule", False),
        ("playground.sampling.sampler", "from . import schedule", False),
        ("playground.sampling.sampler", "from .. import engine", True),
        ("playground.sampling.sampler", "from ..engine.run import Run", True),
        ("playground.sampling.sampler", "import torch.nn.functional as F", False),
        ("playground.sampling.sampler", "def f():\n    import gradio", True),
        ("playground.trace", "from playground.request import MAX_LENGTH", False),
        ("playground.trace", "from playground import request", False),
        ("playground.trace", "from playground import __version__", False),
        ("playground.trace", "from playground import DenoisingPipeline", True),
        ("playground.trace", "if TYPE_CHECKING:\n    from playground.engine.run import Run", True),
        ("playground.trace", "import torch", True),
        ("playground.trace", "importlib.import_module('playground.ui.page')", True),
        ("playground.trace", "__import__('torch')", True),
        ("playground.engine.engine", "from playground import charts", True),
        ("playground.engine.engine", "from playground.runlog.store import RunStore", False),
        ("playground.engine.engine", "import transformers", True),
        ("playground.engine.engine", "import sqlalchemy.orm", True),
        ("playground.charts", "from playground.runlog.rows import RunRow", False),
        ("playground.charts", "import torch", True),
        ("playground.api.health", "import gradio as gr", True),
        ("playground.api.health", "from playground.ui import page", True),
        ("playground.__main__", "from playground.cli import main", False),
        ("playground.ui.page", "import app", True),
        ("app", "import gradio, playground.ui.page", False),
        ("playground", "def f():\n    from playground.engine.pipeline import DenoisingPipeline", False),
        ("playground", "from playground.engine.engine import Engine", True),
        ("playground", "from playground.ui import page", True),
    ],
)
def test_wrong_imports_are_found(module: str, source: str, wrong: bool) -> None:
    found = [complaint(module, name, lazy) for name, lazy in imports(ast.parse(source), module, False)]
    assert any(found) == wrong
