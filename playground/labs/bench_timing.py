"""Timing that can be trusted on a machine with neighbours: warm-up, repeats, arms taken in turn.

Also the prompts that benchmarks use. Must not know what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import cycle, islice

import torch

from playground.denoisers.base import Tokens

WORDS = (
    "river",
    "light",
    "stone",
    "garden",
    "winter",
    "music",
    "paper",
    "window",
    "morning",
    "forest",
    "silver",
    "and",
)


def seconds_of(action: Callable[[], object], device: torch.device) -> float:
    """Wall time of one call, waiting for the device to be done."""
    _synchronise(device)
    started = time.perf_counter()
    action()
    _synchronise(device)
    return time.perf_counter() - started


def in_turn(arms: Mapping[str, Callable[[], float]], repeats: int, *, warm_up: bool = True) -> dict[str, list[float]]:
    """Measure arms alternately, so that a busy minute of the machine falls on all of them.

    Args:
        arms: each gives its own seconds.
        repeats: measurements of each.
        warm_up: call each once before, and forget what it gave.
    """
    if warm_up:
        for arm in arms.values():
            arm()
    names = list(arms)
    times: dict[str, list[float]] = {name: [] for name in names}
    for repeat in range(repeats):
        # Every other round backwards, so that no arm always follows the same one.
        for name in names if repeat % 2 == 0 else names[::-1]:
            times[name].append(arms[name]())
    return times


def prompt_of(tokens: Tokens, count: int) -> str:
    """A prompt that is exactly `count` tokens in the model's template.

    Raises:
        ValueError: the template alone is longer, or no such prompt was found.
    """
    text = "Write about"
    # Words that do not fit are passed over; each of them is a token or two.
    for word in islice(cycle(WORDS), 4 * count + len(WORDS)):
        length = len(tokens.encode_prompt(text))
        if length == count:
            return text
        longer = f"{text} {word}"
        if len(tokens.encode_prompt(longer)) <= count:
            text = longer
    raise ValueError(f"No prompt of {count} tokens was found; choose a longer one.")


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
