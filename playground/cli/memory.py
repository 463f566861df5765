"""How much memory a model could take on this machine right now. Knows the operating system; no models."""

from __future__ import annotations

from pathlib import Path

_GIB = 1024**3


def available_gib(root: Path = Path("/")) -> float | None:
    """Memory that is free or can be freed, within this container's limit; None where the system does not say.

    Args:
        root: where /proc and /sys are.
    """
    free = _of_machine(root / "proc/meminfo")
    left = _of_container(root / "sys/fs/cgroup")
    known = [value for value in (free, left) if value is not None]
    return min(known) / _GIB if known else None


def _of_machine(path: Path) -> int | None:
    for line in _read(path).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _of_container(folder: Path) -> int | None:
    limit, used = _read(folder / "memory.max").strip(), _read(folder / "memory.current").strip()
    if not limit.isdigit() or not used.isdigit():  # "max" is no limit
        return None
    # The page cache counts as used but is given up when asked for.
    cache = sum(
        int(line.split()[1]) for line in _read(folder / "memory.stat").splitlines() if line.startswith("inactive_file ")
    )
    return max(0, int(limit) - int(used) + cache)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
