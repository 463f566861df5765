"""What all tests share: the hypothesis profile, and the embedded model, loaded once a session."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings

from playground.denoisers.loading import load_denoiser
from playground.denoisers.pocket import PocketDenoiser
from playground.settings import Settings

pytest_plugins = ("tests.reference",)

# No deadline: the machines that run this are slow and shared, and a slow example is not a wrong one.
settings.register_profile("house", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# Where other processes use the cores too, waiting for the slowest of several threads takes many times longer.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def pocket() -> PocketDenoiser:
    """The embedded model on the CPU. Not to be changed; contexts made from it are the test's own."""
    denoiser = load_denoiser("pocket", Settings(device="cpu", threads=1))
    assert isinstance(denoiser, PocketDenoiser)
    return denoiser
