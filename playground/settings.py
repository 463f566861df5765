"""What one deployment allows and where it keeps things, read from the environment once.

Every value is set by an `UNMASK_…` environment variable of the field's name (`UNMASK_MAX_LENGTH=256`).
This module must not know models, pages or database tables.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from playground.request import MAX_LENGTH, MAX_STEPS

ROOT = Path(__file__).resolve().parent.parent


class Settings(BaseSettings):
    """Limits, paths and choices of one deployment."""

    model_config = SettingsConfigDict(env_prefix="UNMASK_", extra="ignore", frozen=True)

    data: Path = Field(ROOT / "data", description="Folder of the run log when no database URL is set.")
    database: str = Field("", description="SQLAlchemy URL of the run log; empty: SQLite in the data folder.")
    pocket: Path = Field(ROOT / "assets" / "pocket", description="Folder of the embedded model.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="Where models run.")
    threads: int = Field(0, ge=0, le=1024, description="CPU threads of the model; 0: one a core.")
    max_length: int = Field(256, ge=1, le=MAX_LENGTH, description="Longest canvas, in tokens.")
    max_steps: int = Field(256, ge=1, le=MAX_STEPS, description="Most denoising steps.")
    max_prompt_characters: int = Field(8_000, ge=1, le=100_000, description="Longest prompt.")
    max_seconds: float = Field(180.0, gt=0, description="Longest time a run may take on the device.")
    max_active: int = Field(8, ge=1, le=256, description="Canvases that share one forward.")
    max_queue: int = Field(32, ge=0, le=10_000, description="Runs that may wait for a place.")
    max_queue_per_visitor: int = Field(4, ge=1, le=10_000, description="Runs one visitor may have at once.")
    runs: Literal["own", "all"] = Field("own", description="Whose runs the Runs tab shows, and lets be deleted.")
    on_disconnect: Literal["stop", "finish"] = Field(
        "stop", description="What happens to a run whose page went away; its text is kept either way."
    )

    @property
    def limits(self) -> dict[str, int]:
        """What a request may ask for at most, by the request's names."""
        return {"length": self.max_length, "steps": self.max_steps, "prompt": self.max_prompt_characters}

    @property
    def database_url(self) -> str:
        """URL of the run log; `UNMASK_DATABASE` wins over `UNMASK_DATA`."""
        # SQLAlchemy percent-decodes the path, so a folder with % or ? in its name has to be quoted.
        return self.database or f"sqlite:///{quote(str((self.data / 'runs.sqlite3').resolve()))}"


@lru_cache(maxsize=1)
def get_settings() -> Settings:
    """The settings of this process, read from the environment at the first call.

    Raises:
        SystemExit: a variable is wrong; one sentence says which, and what is allowed.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = f"UNMASK_{str(first['loc'][0]).upper()}"
        reason = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise SystemExit(f"{name} is {str(first['input'])[:60]!r}, but {reason}; correct it or unset it.") from None
