"""`train` from a shell: a whole small budget, and what is said when something is missing or wrong."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from playground.cli.main import app
from tests.reference import ASSETS

pytestmark = pytest.mark.timeout(600)


def call(*words: str | Path) -> Any:
    return CliRunner().invoke(app, ["train", *map(str, words)])


def test_a_small_budget_from_data_to_a_model_that_writes(tmp_path: Path) -> None:
    """The README's small budget, smaller still: four commands on the real base, then the app's own loader."""
    small = [
        *("--set", "data.prompts=12", "--set", "data.answer_tokens=8", "--set", "data.asked_by_base=0"),
        *("--set", "data.validation=8", "--set", "data.batch=12", "--set", "data.sampled=0"),
    ]
    result = call("data", "--run", tmp_path, *small)
    assert result.exit_code == 0, result.stderr
    assert "kept" in result.stdout
    brief = ["--set", "adapt.steps=2", "--set", "adapt.batch=2", "--set", "patterns.canvas_lengths=[8]"]
    result = call("adapt", "--run", tmp_path, *small, *brief)
    assert result.exit_code == 0, result.stderr
    assert "step 2 of 2" in result.stdout
    assert (tmp_path / "curves.html").stat().st_size > 10_000
    result = call("package", "--run", tmp_path)
    assert result.exit_code == 0, result.stderr
    result = call("evaluate", "--run", tmp_path, "--prompts", "1", "--only", "masks")
    assert result.exit_code == 0, result.stderr
    body = json.loads((tmp_path / "evaluation.json").read_text())
    assert set(body["masks"]) == {"0.1", "0.3", "0.5", "0.7", "0.9", "1.0"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["adapt", "--set", "adapt.stepz=1"], 2, "adapt.stepz"),
        (["adapt", "--set", "adapt.steps"], 2, "NAME=VALUE"),
        (["adapt", "--set", "adapt.steps=lots"], 2, "adapt.steps"),
        (["data", "--recipe", "nowhere.toml"], 2, "nowhere.toml"),
        (["evaluate", "--only", "poetry"], 2, "poetry"),
        (["package"], 1, "train adapt"),
        (["adapt"], 1, "answers.jsonl"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(words: list[str], code: int, said: str, tmp_path: Path) -> None:
    run = [] if "--recipe" in words else ["--run", str(tmp_path)]
    result = call(*words, *run)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_without_peft_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "peft":
            raise ModuleNotFoundError("No module named 'peft'", name="peft")
        return real(name, *rest)

    for module in ("playground.training.network", "playground.training.adapt", "playground.training.making"):
        monkeypatch.delitem(__import__("sys").modules, module, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    result = call("adapt", "--run", tmp_path)
    assert result.exit_code == 1
    assert "requirements-training.txt" in result.stderr


def test_the_shipped_folder_is_the_default_base() -> None:
    from playground.training.config import DEFAULT_RECIPE, load_recipe

    assert load_recipe(DEFAULT_RECIPE).base.folder == ASSETS
