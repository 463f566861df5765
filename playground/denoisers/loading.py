"""Turn a model's name into a loaded denoiser on a device. Knows torch's devices; no schedule, no request."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch

from playground.denoisers.base import Denoiser, DenoiserError
from playground.denoisers.pocket import PocketDenoiser
from playground.settings import Settings


def load_denoiser(model_id: str, settings: Settings) -> Denoiser:
    """Load `model_id` where the settings say.

    Raises:
        DenoiserError: unknown name, missing or damaged files, or no such device.
    """
    device = pick_device(settings.device)
    # Loading is bound by memory, and the other cores have imports to do: two threads were no faster alone, and waited
    # for each other beside the start of the app.
    torch.set_num_threads(1)
    try:
        if model_id == "pocket":
            return PocketDenoiser(settings.pocket, device)
    finally:
        torch.set_num_threads(settings.threads or usable_cores())
    raise DenoiserError(f"There is no model called {model_id!r}.")


def pick_device(wanted: str = "auto") -> torch.device:
    """`auto` takes a GPU where there is one.

    Raises:
        DenoiserError: the device asked for is not on this machine.
    """
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        wanted = next(name for name, there in available.items() if there)
    if not available[wanted]:
        raise DenoiserError(
            f"This machine has no {wanted} device that torch can use; set UNMASK_DEVICE to auto or cpu."
        )
    return torch.device(wanted)


def usable_cores() -> int:
    """Cores this process may run on (a container's share rather than the machine's count)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe_device(device: torch.device) -> str:
    """The device in words, for logs and headers: "cpu: AMD EPYC, 2 threads" or "cuda: NVIDIA H200"."""
    if device.type == "cuda":
        return f"cuda: {torch.cuda.get_device_name(device)}"
    if device.type != "cpu":
        return device.type
    return f"cpu: {_processor()}, {torch.get_num_threads()} threads"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
