"""`infill` from a shell: files and stdin, byte for byte; what is wrong is said in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from playground.cli.main import app

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNMASK_DATABASE", f"sqlite:///{tmp_path / 'runs.sqlite3'}")


def call(*words: str | Path, text: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["infill", *map(str, words)], input=text)


def test_stdin_is_filled_and_all_else_kept_byte_for_byte() -> None:
    result = call("-", "--correction", "none", "--seed", "1", text="Où est\r\n\tthe[[2]]?\r\n".encode())
    assert result.exit_code == 0, result.stderr
    assert result.stdout_bytes.startswith("Où est\r\n\tthe".encode())
    assert result.stdout_bytes.endswith(b"?\r\n")
    assert b"[[" not in result.stdout_bytes


def test_characters_can_be_blanked_out_and_candidates_come_as_json(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("The [[1]] cat sat on the mat.")
    result = call(path, "--blank", "10:13=1-2", "--correction", "none", "--keep", "2", "--json", "--prompt", "A story.")
    assert result.exit_code == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert 1 <= len(found) <= 2
    for one in found:
        assert one["text"] == f"The [[1]] {one['blanks'][0]} sat on the mat."
        assert one["lengths"][0] in (1, 2)
        assert one["score"] < 0
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (["-"], b"nothing to fill", "no blank"),
        (["-"], b"[[9-2]]", "[[2-9]]"),
        (["-"], b"\xff\xfe", "UTF-8"),
        (["nowhere.txt"], None, "nowhere.txt"),
        (["-", "--blank", "x"], b"abc", "FROM:TO"),
        (["-", "--blank", "1:9"], b"abc", "outside"),
        (["-", "--blank", "0:1=5000"], b"abc", "1,024"),
        (["-", "--temperature", "9"], b"a[[1]]", "Temperature"),
        (["-", "--correction", "magic"], b"a[[1]]", "magic"),
        (["-", "--ban", ""], b"a[[1]]", "anned"),
        (["-"], b"[[1000]] [[1000]]", "limit"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(words: list[str], text: bytes | None, said: str) -> None:
    result = call(*words, text=text)
    assert result.exit_code in (1, 2)
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
