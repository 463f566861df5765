"""The recipe's settings: one TOML file for all four commands, checked before anything runs.

Every number that decides what the adapter becomes is here, and a run's folder keeps a copy. Must not know how
any of it is done.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from playground.settings import ROOT

DEFAULT_RECIPE = Path(__file__).with_name("pocket.toml")

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class ConfigError(ValueError):
    """A recipe that cannot be used; the text is one sentence."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BaseSettings(_Part):
    """The checkpoint that is adapted."""

    folder: Path = Field(ROOT / "assets" / "pocket", description="Where the base and its tokenizer lie.")


class DataSettings(_Part):
    """What the base is asked, and how its answers are decoded and filtered."""

    prompts: int = Field(8_000, ge=1, description="How many prompts are answered.")
    asked_by_base: Share = Field(0.16, description="Share of prompts the base itself makes up; the rest are templates.")
    prompt_temperature: float = Field(0.7, gt=0, le=2, description="Temperature of made-up prompts.")
    prompt_tokens: int = Field(48, ge=8, le=512, description="Longest prompt that is kept.")
    sampled: Share = Field(0.3, description="Share of answers that are sampled; the rest are greedy.")
    temperature: float = Field(0.8, gt=0, le=2, description="Temperature of sampled answers.")
    answer_tokens: int = Field(96, ge=8, le=1024, description="Longest answer.")
    shortest: int = Field(6, ge=1, description="Answers below this many tokens are dropped.")
    distinct_trigrams: Share = Field(0.8, description="Least share of distinct trigrams in an answer.")
    batch: int = Field(128, ge=1, le=4096, description="Answers decoded at once.")
    validation: int = Field(512, ge=8, description="Answers kept out of training, to watch the loss.")
    learn_from: Literal["all", "greedy", "sampled"] = Field(
        "all", description="Which answers are trained on: all, or only those decoded in one way."
    )
    most: int | None = Field(None, ge=1, description="At most so many answers are trained on.")
    prose: tuple[Path, ...] = Field(
        (), description="Text files, which the patterns with text on both sides learn from."
    )
    prose_share: Share = Field(0.6, description="Share of such batches that is prose, where there is any.")
    seed: int = 0


class DesignSettings(_Part):
    """What the denoiser computes; each field is an arm of the comparison in docs/pocket.md."""

    adapter_on: Literal["masks", "canvas"] = Field(
        "masks", description="Which rows the adapter runs on: masks alone, or the whole canvas, seen both ways."
    )
    masks_see: Literal["before", "all"] = Field("before", description="Which mask rows a mask row sees.")
    prior: Literal["none", "scalar", "row"] = Field(
        "scalar",
        description="How the base's own prediction after an observed token is joined: by one number, or each row's.",
    )
    first_layer: int = Field(0, ge=0, description="Mask rows enter here; 0 is the first layer.")
    rank: int = Field(64, ge=1, le=1024)


class PatternSettings(_Part):
    """Which positions are masked in training; weights of a mixture."""

    windows: float = Field(0.5, ge=0, description="Several windows of masks, each behind its own prefix.")
    random: float = Field(0.25, ge=0, description="Positions at random, a share t of the canvas.")
    spans: float = Field(0.15, ge=0, description="One to four gaps with text on both sides.")
    suffix: float = Field(0.1, ge=0, description="Everything behind a point.")
    window_lengths: tuple[int, ...] = (6, 8, 10)
    windows_each: int = Field(12, ge=1)
    canvas_lengths: tuple[int, ...] = (32, 48, 64, 96)
    least_masked: Share = Field(0.03, description="Smallest t of the random pattern.")


class AdaptSettings(_Part):
    """The optimisation."""

    steps: int = Field(2000, ge=1)
    batch: int = Field(12, ge=1)
    learning_rate: float = Field(6e-4, gt=0)
    warmup: int = Field(40, ge=0)
    final_rate: Share = Field(0.05, description="Of the learning rate, at the last step (cosine).")
    gate_rate: float = Field(10.0, gt=0, description="The gate's learning rate, as a multiple.")
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, gt=0)
    past_end: Share = Field(0.1, description="Loss weight of positions behind the end of the text.")
    distill: Share = Field(0.0, description="Share of the loss that is KL to the base's own distribution.")
    save_every: int = Field(25, ge=1)
    validate_every: int = Field(100, ge=1)
    start_from: Path | None = Field(None, description="Folder of an adapter to go on from.")
    seed: int = 0


class Recipe(_Part):
    """All settings of one making of an adapter."""

    base: BaseSettings = BaseSettings()
    data: DataSettings = DataSettings()
    design: DesignSettings = DesignSettings()
    patterns: PatternSettings = PatternSettings()
    adapt: AdaptSettings = AdaptSettings()
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = Field("auto", description="Of the products; masters are float32.")


def load_recipe(path: Path, changes: Mapping[str, Any] | None = None) -> Recipe:
    """Read a recipe; `changes` are dotted names with values that win over the file (`adapt.steps`).

    Raises:
        ConfigError: no such file, not TOML, or a setting that is unknown or out of range.
    """
    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"The recipe {path} cannot be read ({error.strerror}); name one that exists.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The recipe {path} is not TOML ({error}); correct it.") from None
    for name, value in (changes or {}).items():
        *parents, leaf = name.split(".")
        part = body
        for parent in parents:
            part = part.setdefault(parent, {})
            if not isinstance(part, dict):
                raise ConfigError(f"There is no setting {name!r}; see {DEFAULT_RECIPE.name}.")
        part[leaf] = value
    try:
        return Recipe.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where} in the recipe: {first['msg'][:1].lower()}{first['msg'][1:]}.") from None
