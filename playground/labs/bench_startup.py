"""How long a fresh process takes until its model is ready, and how much memory it takes at most.

Measured from outside, in a process of its own, since this one has everything loaded already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from playground.labs.bench_results import Spread, StartupResult
from playground.labs.bench_runs import BenchError
from playground.settings import ROOT

# VmHWM and not getrusage: a child's ru_maxrss starts at its parent's, and this process is the larger one.
_CHILD = """
import json, sys, time
started = time.perf_counter()
from playground.engine.engine import Engine
from playground.request import parse_request
imported = time.perf_counter()
engine = Engine()
status = engine.ready("pocket")
if status.state.value != "ready":
    sys.exit(status.message)

def peak():
    try:
        for line in open("/proc/self/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024**2
    except OSError:
        pass
    import resource
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1024**3

loaded = time.perf_counter()
at_ready = peak()
print("ready", flush=True)
engine.submit(parse_request({"prompt": "Why is the sky blue?", "length": 64, "steps": 4, "block": 0})).wait()
engine.close()
print(json.dumps({"imports": imported - started, "load": loaded - imported, "ready": at_ready, "run": peak()}))
"""


@dataclass(frozen=True, slots=True)
class _Start:
    ready: float
    imports: float
    load: float
    peak_ready: float
    peak_run: float


def measure_startup(repeats: int) -> StartupResult:
    """Start `repeats` processes, one after another; the first is a warm-up of the disk cache and does not count."""
    _start()
    starts = [_start() for _ in range(repeats)]
    return StartupResult(
        ready=Spread.of(start.ready for start in starts),
        imports=Spread.of(start.imports for start in starts),
        load=Spread.of(start.load for start in starts),
        peak_ready_gib=Spread.of(start.peak_ready for start in starts),
        peak_run_gib=Spread.of(start.peak_run for start in starts),
    )


def _start() -> _Start:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        ready = time.perf_counter() - started
        rest, complaint = child.communicate()
    if first != "ready\n" or child.returncode:
        last = complaint.strip().splitlines()[-1:] or ["it gave no reason"]
        raise BenchError(f"A fresh process could not load the model ({last[0]}).")
    told = json.loads(rest)
    return _Start(ready, told["imports"], told["load"], told["ready"], told["run"])
