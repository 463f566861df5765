"""The documents keep their promises: front matter is valid, commands run, tables and sums tell the truth."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from playground.settings import ROOT, Settings
from playground.trace import Result, Trace

README = (ROOT / "README.md").read_text("utf-8")
_, FRONT_MATTER, BODY = README.split("---\n", 2)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", BODY, re.S)


def marked(name: str) -> str:
    found = re.search(rf"<!-- command: {name} -->\n```bash\n(.*?)```", BODY, re.S)
    assert found, f"README has no {name} command"
    return found.group(1).strip()


PLAYGROUND_LINES = [line for block in blocks("bash") for line in block.splitlines() if "-m playground" in line]


def test_front_matter_is_what_spaces_asks_for() -> None:
    facts = yaml.safe_load(FRONT_MATTER)
    assert README.startswith("---\n")
    assert facts["title"] == "Unmask"
    assert len(facts["emoji"]) == 1
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {facts["colorFrom"], facts["colorTo"]} <= colours
    assert facts["suggested_hardware"] == "cpu-basic"
    assert re.fullmatch(r"\d+[mh]", facts["startup_duration_timeout"])
    assert facts["pinned"] in {True, False}
    assert all(isinstance(tag, str) for tag in facts["tags"])
    assert facts["sdk"] == "gradio"
    assert facts["python_version"] in {"3.11", "3.12"}
    assert facts["license"] == "apache-2.0"
    assert (ROOT / facts["app_file"]).is_file()
    assert len(facts["short_description"]) <= 60
    bound = re.search(r"^gradio>=(\d+)\.(\d+),<(\d+)$", (ROOT / "requirements.txt").read_text(), re.M)
    assert bound
    major, minor, _ = (int(part) for part in facts["sdk_version"].split("."))
    low_major, low_minor, high_major = (int(part) for part in bound.groups())
    assert (low_major, low_minor) <= (major, minor)
    assert major < high_major


@pytest.mark.parametrize(("name", "last"), [("run", "app.py"), ("test", "pytest")])
def test_set_up_is_one_line_with_files_that_exist(name: str, last: str) -> None:
    command = marked(name)
    assert "\n" not in command
    assert command.endswith(last)
    for word in shlex.split(command):
        if word.endswith((".txt", ".py")):
            assert (ROOT / word).is_file()


def surroundings(folder: Path) -> dict[str, str]:
    """This process's environment, less what would change the app, with a run log of its own."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("UNMASK_", "GRADIO_"))}
    return {**mine, "UNMASK_DATA": str(folder), "COLUMNS": "100"}


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 10


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stands for the README's `training` folder; its four commands go on from each other."""
    return tmp_path_factory.mktemp("training")


@pytest.mark.parametrize("line", PLAYGROUND_LINES)
def test_command_lines_run(line: str, tmp_path: Path, training: Path) -> None:
    words = [str(training) if word == "training" else word for word in shlex.split(line)]
    assert words[0] == ".venv/bin/python"
    if "bench" in words:
        words.append("--help")  # the whole of it takes minutes
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=ROOT,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # An empty run log says so, on the other stream.
    assert done.stdout.strip() or words[3] == "runs"


def shown_default(value: object) -> str:
    """A default as people write it."""
    if isinstance(value, Path):
        return value.relative_to(ROOT).as_posix()
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_setting_is_explained() -> None:
    listed = dict(re.findall(r"^\| `(UNMASK_\w+)` \| (.*?) ?\|", BODY, re.M))
    assert listed.keys() == {f"UNMASK_{name.upper()}" for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        shown = shown_default(field.default)
        assert listed[f"UNMASK_{name.upper()}"] == (f"`{shown}`" if shown else ""), name


def test_files_named_in_the_table_exist() -> None:
    table = BODY.split("## To change X, edit Y")[1].split("\n## ")[0].split("[CONTRIBUTING")[0]
    names = re.findall(r"`([\w./-]+)`", table)
    assert len(names) > 15
    for name in names:
        assert (ROOT / name).exists(), name


DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("assets/**/*.md")]


@pytest.mark.parametrize("document", [path.relative_to(ROOT).as_posix() for path in DOCUMENTS])
def test_local_links_and_pictures_resolve(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text("utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{document} links to {target}"


def test_figures_were_filled_in() -> None:
    figures = BODY.split("<!-- figures -->")[1].split("<!-- /figures -->")[0]
    assert figures.count("|") > 20


def test_sums_of_the_embedded_model_are_right() -> None:
    card = (ROOT / "assets" / "pocket" / "README.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `([\w.-]+)` \|.*`([0-9a-f]{64})`", card, re.M))
    files = {path for path in (ROOT / "assets" / "pocket").iterdir() if path.name != "README.md"}
    assert listed.keys() == {path.name for path in files}
    for path in files:
        with path.open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == listed[path.name], path.name
    assert listed["SmolLM2-135M-Instruct.Q4_1.gguf"] in (ROOT / "NOTICE").read_text("utf-8")


def test_the_trace_format_shows_a_trace() -> None:
    (lines,) = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "trace-format.md").read_text("utf-8"), re.S)
    trace = Trace.from_lines(lines)
    assert trace.outcome is not None
    assert trace.outcome.result is Result.FINISHED
    assert "".join(cell.text for cell in trace.canvas_at(len(trace.frames))) == trace.outcome.text
    assert trace.to_lines() == lines
