"""The README keeps its promises: its front matter is valid, its commands run, the files it names exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from playground.settings import ROOT, Settings

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


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 10


@pytest.mark.parametrize("line", PLAYGROUND_LINES)
def test_command_lines_run(line: str, tmp_path: Path) -> None:
    words = shlex.split(line)
    assert words[0] == ".venv/bin/python"
    if "bench" in words:
        words.append("--help")  # the whole of it takes minutes
    done = subprocess.run(
        [sys.executable, *words[1:]],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "UNMASK_DATA": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_setting_is_explained() -> None:
    listed = set(re.findall(r"^\| `(UNMASK_\w+)`", BODY, re.M))
    assert listed == {f"UNMASK_{name.upper()}" for name in Settings.model_fields}


def test_files_named_in_the_table_exist() -> None:
    table = BODY.split("## To change X, edit Y")[1].split("\n## ")[0].split("[CONTRIBUTING")[0]
    names = re.findall(r"`([\w./-]+)`", table)
    assert len(names) > 15
    for name in names:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/pocket.md", "docs/trace-format.md"]
)
def test_local_links_and_pictures_resolve(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text("utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), f"{document} links to {target}"


def test_figures_were_filled_in() -> None:
    figures = BODY.split("<!-- figures -->")[1].split("<!-- /figures -->")[0]
    assert figures.count("|") > 20
