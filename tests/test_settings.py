"""Settings come from the environment, once, within bounds; paths of any name become a database URL."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import ValidationError
from sqlalchemy.engine import make_url

from playground.settings import ROOT, Settings, get_settings

BOUNDS: dict[str, tuple[float, float]] = {
    "threads": (0, 1024),
    "max_length": (1, 1024),
    "max_steps": (1, 1024),
    "max_prompt_characters": (1, 100_000),
    "max_active": (1, 256),
    "max_queue": (0, 10_000),
    "max_queue_per_visitor": (1, 10_000),
}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"UNMASK_{name.upper()}", raising=False)


@pytest.mark.parametrize("name", BOUNDS)
def test_limits_are_read_from_the_environment_and_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = BOUNDS[name]
    for value in (low, high):
        monkeypatch.setenv(f"UNMASK_{name.upper()}", str(value))
        assert getattr(Settings(), name) == value
    for wrong in (low - 1, high + 1, "many", "", 1.5, "nan"):
        monkeypatch.setenv(f"UNMASK_{name.upper()}", str(wrong))
        with pytest.raises(ValidationError):
            Settings()


@pytest.mark.parametrize("name", ["device", "runs", "on_disconnect"])
def test_choices_are_checked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"UNMASK_{name.upper()}", "something else")
    with pytest.raises(ValidationError):
        Settings()


def test_a_run_needs_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("0", "-1", "nan"):
        monkeypatch.setenv("UNMASK_MAX_SECONDS", wrong)
        with pytest.raises(ValidationError):
            Settings()


def test_every_setting_explains_itself_and_cannot_be_changed() -> None:
    settings = Settings()
    for name, field in Settings.model_fields.items():
        assert field.description, name
        with pytest.raises(ValidationError, match="frozen"):
            setattr(settings, name, getattr(settings, name))


def test_variables_of_others_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNMASK_UNHEARD_OF", "1")
    monkeypatch.setenv("MAX_LENGTH", "7")
    assert Settings().max_length == 256


def test_the_process_reads_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    get_settings.cache_clear()
    monkeypatch.setenv("UNMASK_MAX_LENGTH", "17")
    assert get_settings().max_length == 17
    monkeypatch.setenv("UNMASK_MAX_LENGTH", "18")
    assert get_settings() is get_settings()
    assert get_settings().max_length == 17
    get_settings.cache_clear()


def test_the_embedded_model_is_where_the_settings_say() -> None:
    assert Settings().pocket == ROOT / "assets" / "pocket"
    assert Settings().pocket.is_dir()


def test_a_database_url_wins_over_the_folder() -> None:
    assert Settings(database="postgresql+psycopg://host/db").database_url == "postgresql+psycopg://host/db"


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), min_size=1, max_size=30))
def test_a_folder_of_any_name_is_found_again_in_the_url(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    database = make_url(Settings(data=folder).database_url).database
    assert database is not None
    assert Path(database) == (folder / "runs.sqlite3").resolve()
