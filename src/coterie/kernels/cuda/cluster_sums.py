"""Sums of rows by cluster, in float64 and in a fixed order: the same bits in every run, without atomic additions."""

from __future__ import annotations

from collections.abc import Callable

import torch

SEGMENT = 256  # rows that are added one after the other
SLAB = 1 << 24  # values in memory at once


def by_cluster(values_of: Callable[[torch.Tensor], torch.Tensor], labels: torch.Tensor, k: int) -> torch.Tensor:
    """Sums (k, m) over each cluster of float64 values; ``values_of(rows)`` returns those of some rows (r, m).

    Rows are sorted by cluster. Segments of up to 256 rows of one cluster are summed, then segments of segments.
    """
    order = torch.argsort(labels, stable=True)
    counts = torch.bincount(labels.long(), minlength=k)
    total = _segments(values_of, order, counts)
    while len(total) > k:
        counts = torch.clamp(-(-counts // SEGMENT), min=1)
        parts = total
        total = _segments(parts.__getitem__, torch.arange(len(parts), device=labels.device), counts)
    return total


def _segments(
    values_of: Callable[[torch.Tensor], torch.Tensor], order: torch.Tensor, counts: torch.Tensor
) -> torch.Tensor:
    """Sums of segments; a cluster without rows has one segment, whose sum is 0."""
    lengths = _lengths(counts)
    ends = lengths.cumsum(0)
    sums = []
    size = max(1, SLAB // (SEGMENT * values_of(order[:1]).shape[1]))
    for start in range(0, len(lengths), size):
        some = lengths[start : start + size]
        last = int(ends[start + len(some) - 1])
        rows = order[last - int(some.sum()) : last]
        sums.append(torch.segment_reduce(values_of(rows), "sum", lengths=some, axis=0, initial=0.0))
    return torch.cat(sums)


def _lengths(counts: torch.Tensor) -> torch.Tensor:
    """Numbers of rows of all segments: those of a cluster are full, except for the last."""
    segments = torch.clamp(-(-counts // SEGMENT), min=1)
    lengths = torch.full((int(segments.sum()),), SEGMENT, dtype=torch.int64, device=counts.device)
    lengths[segments.cumsum(0) - 1] = counts - (segments - 1) * SEGMENT
    return lengths
