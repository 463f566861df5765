"""`fill-json` from a shell: JSON that holds to a schema, and one sentence for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from playground.cli.main import app
from playground.runlog.rows import RunFilter
from playground.runlog.store import RunStore
from playground.settings import get_settings

pytestmark = pytest.mark.timeout(300)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "sky": {"enum": ["blue", "plaid"]}},
    "required": ["name", "sky"],
}


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("UNMASK_DATABASE", url := f"sqlite:///{tmp_path / 'runs.sqlite3'}")
    get_settings.cache_clear()
    yield url
    get_settings.cache_clear()


def call(*words: str | Path, text: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["fill-json", *map(str, words)], input=text)


def test_a_schema_is_filled_and_what_was_compared_is_told(tmp_path: Path, database: str) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    result = call("--schema", path, "--json", "Describe Anna under a clear sky as JSON.")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["valid"]
    assert found["problems"] == []
    assert json.loads(found["text"])["sky"] == "blue"
    assert [(slot["path"], slot["kind"]) for slot in found["slots"]] == [("$.name", "string"), ("$.sky", "choice")]
    assert {one["what"] for one in found["slots"][1]["compared"]} == {'"blue"', '"plaid"'}
    with RunStore.open(database) as store:
        (row,) = store.list_runs(RunFilter())
    assert row.text == found["text"]


def test_stdin_and_what_does_not_hold(tmp_path: Path) -> None:
    result = call("--schema", "-", "--no-log", "x", text=b'{"type": "null", "not": {"type": "null"}}')
    assert result.exit_code == 1
    assert result.stdout == "null\n"
    assert "does not hold" in result.stderr


@pytest.mark.parametrize(
    ("schema", "words", "said"),
    [
        (b"", [], "not JSON"),
        (b"\xff\xfe{", [], "UTF-8"),
        (b"[" * 100_000, [], "too deep"),
        (b" " * 1_000_001, [], "bytes"),
        (b'{"type": "robot"}', [], "not valid"),
        (b"{}", ["--temperature", "9"], "Temperature"),
        (b"{}", ["--model", "nobody"], "no model"),
    ],
)
def test_what_is_wrong_is_one_sentence(schema: bytes, words: list[str], said: str) -> None:
    result = call("--schema", "-", *words, "x", text=schema)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr


def test_no_such_file(tmp_path: Path) -> None:
    result = call("--schema", tmp_path / "nowhere.json", "x")
    assert result.exit_code == 2
    assert "cannot be read" in result.stderr
