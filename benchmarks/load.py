"""Was the machine ours? Cores that others used while a worker ran.

Taking turns does not make a busy machine fair: threads that spin at barriers (OpenMP) lose many times more
to a busy core than threads that take work from a queue, so ratios measured then are wrong, not only noisy.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

STAT = Path("/proc/stat")
TOLERATED = 0.1  # cores


def foreign_cores(call: Callable[[], None]) -> float | None:
    """Run ``call``, which waits for a child; mean number of cores kept busy by neither of us meanwhile."""
    if not STAT.exists():
        call()
        return None
    begin, busy, own = perf_counter(), _busy_seconds(), _own_seconds()
    call()
    busy, own = _busy_seconds() - busy, _own_seconds() - own
    return max(busy - own, 0.0) / (perf_counter() - begin)


def _busy_seconds() -> float:
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, STAT.read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
