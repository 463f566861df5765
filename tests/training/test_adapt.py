"""The adaptation learns, goes on after a stop as if there had been none, and refuses what it cannot go on with."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from playground.training.adapt import adapt, batch_at, loss_of, rate_at, validate
from playground.training.checkpoint import Masters, curve
from playground.training.config import AdaptSettings, ConfigError, Recipe
from playground.training.data import Example, read_examples, read_lines
from playground.training.making import denoiser_of
from playground.training.progress import draw_curves, line_of
from tests.training.test_data import make


@pytest.fixture(scope="module")
def data(tiny_base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    tiny = Recipe.model_validate(
        {
            "base": {"folder": str(tiny_base)},
            "data": {"prompts": 24, "batch": 8, "answer_tokens": 12, "shortest": 1, "distinct_trigrams": 0}
            | {"asked_by_base": 0},
        }
    )
    make(folder, tiny)
    return folder


def changed(recipe: Recipe, **fields: object) -> Recipe:
    """The recipe with other settings of its adaptation."""
    return recipe.model_copy(update={"adapt": recipe.adapt.model_copy(update=fields)})


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "adapter" / "adapter_model.safetensors") | load_file(run / "adapter" / "mask.safetensors")


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(recipe: Recipe, data: Path, tmp_path: Path) -> None:
    assert adapt(tmp_path / "whole", [data], recipe, denoiser_of(recipe)) == 6
    stopped = tmp_path / "stopped"
    calls = []

    def interrupt(line: dict[str, object]) -> None:
        calls.append(line)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(stopped, [data], recipe, denoiser_of(recipe), tell=interrupt)
    assert adapt(stopped, [data], recipe, denoiser_of(recipe)) == 6
    one, two = weights_of(tmp_path / "whole"), weights_of(stopped)
    assert one.keys() == two.keys()
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=0, atol=0)
    logs = [read_lines(run / "log.jsonl") for run in (tmp_path / "whole", stopped)]
    assert [line["step"] for line in logs[1]] == list(range(1, 7))
    assert [line["cross_entropy"] for line in logs[0]] == [line["cross_entropy"] for line in logs[1]]
    assert [step for step, _, _ in curve(stopped)] == [3, 6]


def test_it_learns(recipe: Recipe, data: Path, tmp_path: Path) -> None:
    """A few dozen steps on a handful of texts bring the loss of masks down."""
    longer = changed(recipe, steps=40, learning_rate=0.02, validate_every=1000)
    adapt(tmp_path, [data], longer, denoiser_of(longer))
    losses = [line["cross_entropy"] for line in read_lines(tmp_path / "log.jsonl")]
    assert sum(losses[-8:]) / 8 < sum(losses[:8]) / 8 - 0.5


def test_a_time_limit_stops_and_keeps(recipe: Recipe, data: Path, tmp_path: Path) -> None:
    assert adapt(tmp_path, [data], recipe, denoiser_of(recipe), seconds=1e-9) == 0
    assert weights_of(tmp_path)
    assert adapt(tmp_path, [data], recipe, denoiser_of(recipe)) == 6


def test_another_design_is_not_gone_on_with(recipe: Recipe, data: Path, tmp_path: Path) -> None:
    adapt(tmp_path, [data], recipe, denoiser_of(recipe), seconds=1e-9)
    other = recipe.model_copy(update={"design": recipe.design.model_copy(update={"prior": "none"})})
    with pytest.raises(ConfigError, match="another design"):
        adapt(tmp_path, [data], other, denoiser_of(other))


def test_it_can_start_from_an_adapter(recipe: Recipe, data: Path, tmp_path: Path) -> None:
    adapt(tmp_path / "first", [data], recipe, denoiser_of(recipe))
    second = changed(recipe, start_from=tmp_path / "first" / "adapter", steps=1, learning_rate=1e-12)
    adapt(tmp_path / "second", [data], second, denoiser_of(second))
    for name, value in weights_of(tmp_path / "first").items():
        torch.testing.assert_close(weights_of(tmp_path / "second")[name], value, rtol=0, atol=1e-6)


def test_without_data_it_says_what_to_do(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        adapt(tmp_path, [tmp_path / "data"], recipe, denoiser_of(recipe))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "answers.jsonl").write_text("")
    with pytest.raises(ConfigError, match="nothing to train on"):
        adapt(tmp_path, [tmp_path / "data"], recipe, denoiser_of(recipe))


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_weights(
    recipe: Recipe, data: Path, tmp_path: Path
) -> None:
    network = denoiser_of(recipe)

    def spoil(line: dict[str, object]) -> None:
        if line["step"] == 3:
            with torch.no_grad():
                network.mask_embedding.fill_(math.nan)

    with pytest.raises(ConfigError, match="no number at step 4"):
        adapt(tmp_path, [data], recipe, network, tell=spoil)
    assert all(bool(value.isfinite().all()) for value in weights_of(tmp_path).values())


def test_every_example_is_seen_once_an_epoch(recipe: Recipe) -> None:
    """Steps are a pure function of their number; eight of them go through 32 examples exactly once."""
    examples = [Example((100 + i,), tuple(range(200, 212))) for i in range(32)]
    seen = []
    for step in range(8):
        _, batch = batch_at(step, examples, recipe)
        _, again = batch_at(step, examples, recipe)
        assert torch.equal(batch.ids, again.ids)
        seen += batch.ids[:, 0].tolist()
    assert sorted(seen) == [100 + i for i in range(32)]


@pytest.mark.parametrize("distill", [0.0, 0.5])
def test_the_loss_weighs_what_is_past_the_end(recipe: Recipe, distill: float) -> None:
    settings = recipe.adapt.model_copy(update={"distill": distill, "past_end": 0.0})
    network = denoiser_of(recipe)
    _, batch = batch_at(0, [Example((20, 21), (30, 2))] * 32, changed(recipe, seed=3))
    loss = loss_of(network, batch, settings)
    assert math.isfinite(float(loss.total.detach()))
    assert loss.masks == int(((batch.targets >= 0) & ~batch.past_end).sum())


def test_the_learning_rate_rises_and_falls() -> None:
    settings = AdaptSettings(steps=100, warmup=10, learning_rate=1.0, final_rate=0.1)
    rates = [rate_at(step, settings) for step in range(100)]
    assert rates[0] == pytest.approx(0.1, rel=0.01)
    assert max(rates) == pytest.approx(1, rel=0.05)
    assert rates[-1] == pytest.approx(0.1, rel=0.1)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_masters_keep_what_bfloat16_would_lose() -> None:
    """Steps far below bfloat16's spacing add up."""
    parameter = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    masters = Masters({"x": parameter}, AdaptSettings(weight_decay=0))
    for _ in range(40):
        parameter.grad = torch.ones_like(parameter)
        masters.step(1e-3)
    assert float(masters.copies["x"][0]) == pytest.approx(0.96, abs=0.005)
    assert float(parameter.detach()[0]) == pytest.approx(0.96, abs=0.01)


def test_curves_and_lines(recipe: Recipe, data: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    adapt(tmp_path, [data], recipe, denoiser_of(recipe), tell=lambda entry: lines.append(line_of(entry, 6)))
    assert len(lines) == 6
    assert "validation: windows" in lines[-1]
    page = draw_curves(tmp_path).read_text(encoding="utf-8")
    assert "spans, validation" in page
    assert "https://cdn" not in page.split("</script>")[-1]


def test_validation_is_the_same_every_time(recipe: Recipe, data: Path) -> None:
    network = denoiser_of(recipe)
    _, validation = read_examples(data, recipe.base.folder, recipe.data)
    assert json.dumps(validate(network, validation, recipe)) == json.dumps(validate(network, validation, recipe))
