"""Groups of columns: their statistics and indices."""

import operator
from dataclasses import dataclass
from typing import Any

from coterie.core.stats import Stats
from coterie.core.stored import stored
from coterie.errors import ParameterError


@stored("statistics.Groups")
@dataclass(frozen=True, init=False)
class Groups(Stats):
    """Statistics of all groups."""

    groups: tuple[Any, ...]

    def __init__(self, *groups: Any):
        object.__setattr__(self, "groups", groups)

    def leaves(self) -> list[Any]:
        return list(self.groups)


def column_indices(columns: Any) -> list[int]:
    """Columns of a group, a slice or a list, as a list."""
    return list(range(columns.start, columns.stop)) if isinstance(columns, slice) else columns


def as_slice(columns: list[int]) -> Any:
    """Adjacent columns as a slice, so that they are not copied; other columns unchanged."""
    first = columns[0] if columns else 0
    return slice(first, first + len(columns)) if columns == list(range(first, first + len(columns))) else columns


def as_group(group: Any) -> tuple[Any, list[int]]:
    """A family and the numbers of its columns."""
    try:
        family, columns = group
        return family, [operator.index(j) for j in columns]
    except (TypeError, ValueError):
        raise ParameterError(
            "groups must be pairs of a family and the numbers of its columns, such as ('poisson', [0, 2]); got "
            f"{group!r}"
        ) from None
