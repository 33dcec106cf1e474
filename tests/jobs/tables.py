"""Helpers of the tests of jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_lines(folder: Path, *lines: str, name: str = "table.csv") -> Path:
    """Write a text file and return its path."""
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def same_partition(a, b) -> bool:
    """Whether two arrays of labels are equal up to the numbers of the clusters."""
    pairs = set(zip(np.asarray(a).tolist(), np.asarray(b).tolist(), strict=True))
    return len(pairs) == len(set(a)) == len(set(b))


def leftovers(folder: Path) -> list[str]:
    """Names of temporary files in a folder."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))
