"""`train`: how the embedded model is made, as four commands. Knows options and exit codes; `training` does the work."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from playground.cli.terminal import BadRequest, CommandError, put, say

if TYPE_CHECKING:
    from playground.training.config import Recipe

train = typer.Typer(
    name="train",
    help="Make a denoiser out of the autoregressive base: data, adaptation, evaluation, packaging.",
    epilog="Each command goes on where it was stopped. A small budget: train data --set data.prompts=200, "
    "train adapt --set adapt.steps=50, train evaluate --prompts 4, train package.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)

Folder = Annotated[
    Path, typer.Option("--run", metavar="FOLDER", help="Where data, checkpoints, curves and the evaluation are kept.")
]
RecipeFile = Annotated[
    Path | None,
    typer.Option(
        "--recipe", metavar="FILE", help="Settings as TOML. [dim]\\[default: the recipe of the shipped adapter][/dim]"
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="One setting in place of the file's, such as adapt.steps=50; may be repeated.",
    ),
]
RUN = Path("training")


@train.command()
def data(run: Folder = RUN, recipe: RecipeFile = None, changes: Changes = None) -> None:
    """Ask the base, and keep its answers that are worth learning from."""
    with _explained():
        settings = _recipe(recipe, changes)
        from playground.training.base import load_tokens
        from playground.training.data import write_answers, write_prompts
        from playground.training.making import base_of

        folder = run / "data"
        folder.mkdir(parents=True, exist_ok=True)
        base, tokens = base_of(settings), load_tokens(settings.base.folder)
        write_prompts(folder, settings.data, base, tokens, say)
        verdicts = write_answers(folder, settings.data, base, tokens, say)
        put(f"{folder}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())) + "\n")


@train.command()
def adapt(
    run: Folder = RUN,
    recipe: RecipeFile = None,
    changes: Changes = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", min=1, metavar="NUMBER", help="Stop after about this long; the command goes on from there."
        ),
    ] = None,
) -> None:
    """Train the adapter on masked answers."""
    with _explained():
        settings = _recipe(recipe, changes)
        from playground.training.adapt import adapt as train_adapter
        from playground.training.making import denoiser_of
        from playground.training.progress import draw_curves, line_of

        step = train_adapter(
            run,
            [run / "data"],
            settings,
            denoiser_of(settings),
            seconds=math.inf if seconds is None else seconds,
            tell=lambda entry: say(line_of(entry, settings.adapt.steps)),
        )
        page = draw_curves(run)
        put(f"{run / 'adapter'}: step {step} of {settings.adapt.steps}; curves in {page}\n")


@train.command()
def evaluate(  # noqa: PLR0917  (typer passes options by name)
    run: Folder = RUN,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            metavar="FOLDER",
            help="A packaged model. [dim]\\[default: what `package` made, else the shipped one][/dim]",
        ),
    ] = None,
    prompts: Annotated[int, typer.Option("--prompts", min=1, metavar="NUMBER", help="How many held-out prompts.")] = 64,
    only: Annotated[
        str, typer.Option("--only", metavar="PARTS", help="decoding, presets, masks or infill, parted by commas.")
    ] = "decoding,presets,masks,infill",
    lengths: Annotated[str, typer.Option("--lengths", metavar="TOKENS", help="Canvases of the decodings.")] = "48,64",
    paces: Annotated[
        str, typer.Option("--paces", metavar="TOKENS", help="Tokens that the decodings commit in a forward.")
    ] = "1,2,4,8",
) -> None:
    """Measure packaged weights on prompts and texts that no training saw."""
    parts = [part.strip() for part in only.split(",") if part.strip()]
    known = ("decoding", "presets", "masks", "infill")
    if unknown := next((part for part in parts if part not in known), None):
        raise BadRequest(f"There is no part called {unknown[:60]!r}; choose from {', '.join(known)}.")
    with _explained():
        from playground.settings import ROOT
        from playground.training.making import shipped_denoiser
        from playground.training.package import checksum
        from playground.training.progress import decoding_table
        from playground.training.report import evaluate as measure

        made = run / "pocket"
        folder = weights or (made if made.is_dir() else ROOT / "assets" / "pocket")
        body = measure(
            shipped_denoiser(folder),
            run / "evaluation.json",
            weights=checksum(folder / "adapter_model.safetensors"),
            prompts=prompts,
            parts=parts,
            lengths=_numbers("--lengths", lengths),
            paces=_numbers("--paces", paces),
            tell=say,
        )
        put(f"{decoding_table(body)}\n{run / 'evaluation.json'}\n")


@train.command()
def compare(  # noqa: PLR0917  (typer passes options by name)
    run: Folder = RUN,
    recipe: RecipeFile = None,
    changes: Changes = None,
    arms: Annotated[
        Path | None,
        typer.Option(
            "--arms", metavar="FILE", help="The designs as TOML. [dim]\\[default: those of docs/pocket.md][/dim]"
        ),
    ] = None,
    only: Annotated[str | None, typer.Option("--only", metavar="ARMS", help="Some of them, parted by commas.")] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, metavar="NUMBER", help="Processor time for each arm.")
    ] = 600,
) -> None:
    """Train designs on equal compute, and measure them alike."""
    with _explained():
        from playground.training.compare import DEFAULT_ARMS, comparison_table, read_arms
        from playground.training.compare import compare as beside_each_other
        from playground.training.config import DEFAULT_RECIPE

        chosen = read_arms(arms or DEFAULT_ARMS)
        if only is not None:
            names = [name.strip() for name in only.split(",")]
            if unknown := next((name for name in names if name not in chosen), None):
                raise BadRequest(f"There is no arm called {unknown[:60]!r}; choose from {', '.join(chosen)}.")
            chosen = {name: chosen[name] for name in names}
        found = beside_each_other(run, recipe or DEFAULT_RECIPE, chosen, seconds, changes=_changes(changes), tell=say)
        put(f"{comparison_table(found)}\n{run / 'comparison.json'}\n")


@train.command()
def package(
    run: Folder = RUN,
    recipe: RecipeFile = None,
    into: Annotated[
        Path | None,
        typer.Option("--into", metavar="FOLDER", help="Where to. [dim]\\[default: pocket in the run's folder][/dim]"),
    ] = None,
) -> None:
    """Put base, adapter, tokenizer and model card into one folder that the app can run."""
    with _explained():
        settings = _recipe(recipe, None)
        from playground.training.package import package as put_together

        folder = into or run / "pocket"
        for path in put_together(run, settings.base.folder, folder):
            put(f"{path}\n")
        put(f"Run the app on it: UNMASK_POCKET={folder} python app.py\n")


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise BadRequest(f"{option} takes whole numbers from 1, parted by commas; {text[:60]!r} was given.")
    return numbers


def _recipe(path: Path | None, changes: list[str] | None) -> Recipe:
    from playground.training.config import DEFAULT_RECIPE, load_recipe

    return load_recipe(path or DEFAULT_RECIPE, _changes(changes))


def _changes(texts: list[str] | None) -> dict[str, Any]:
    return dict(_change(text) for text in texts or [])


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadRequest(f"--set takes NAME=VALUE, such as adapt.steps=50; {text[:60]!r} was given.")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


@contextmanager
def _explained() -> Iterator[None]:
    """What can go wrong, as one sentence."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name == "peft":
            raise CommandError("Training needs peft; pip install -r requirements-training.txt first.") from None
        raise
    except FileNotFoundError as error:
        raise CommandError(f"There is no {error.filename or error}; run the command that makes it first.") from None
    except (ValueError, RuntimeError) as error:
        raise (BadRequest if type(error).__name__ == "ConfigError" else CommandError)(
            str(error).split("\n")[0]
        ) from None
