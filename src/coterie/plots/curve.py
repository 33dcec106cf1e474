"""What figures over the number of clusters share."""

from __future__ import annotations

from typing import Any

from coterie.palette import MARK
from coterie.plots.display import Array, plain_numbers

TICKS = 14  # along K at most


def over_k(ax: Any, ks: Array, label: str) -> None:
    """Ticks at the K there are, no frame on the right."""
    ax.set_xlabel("number of clusters K")
    ax.set_ylabel(label)
    ticks_at(ax, ks)
    plain_numbers(ax.yaxis)
    ax.spines[["top", "right"]].set_visible(False)


def ticks_at(ax: Any, ks: Array, most: int = TICKS) -> None:
    """Ticks at the first K and at those after it that are far enough from the last one to be read."""
    low, high = float(min(ks)), float(max(ks))
    room = max(0.05 * (high - low), 0.6)
    ax.set_xlim(low - room, high + room)
    apart, shown = (high - low) / most, [int(ks[0])]
    for k in ks[1:]:
        if k - shown[-1] >= apart:
            shown.append(int(k))
    ax.set_xticks(shown)


def chosen(ax: Any, k: float | None, value: float | None, text: str) -> Any:
    """A dashed line at the K that was chosen, a circle on the curve, and who says so; None where none was."""
    if k is None:
        return None
    line = ax.axvline(k, color=MARK, linestyle="--", linewidth=1.2, zorder=1)
    if value is not None:
        ax.plot([k], [value], "o", markersize=11, markerfacecolor="none", markeredgewidth=1.6, color=MARK, zorder=4)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    ax.set_ylim(low, high + 0.1 * (high - low))  # room for the text
    inner = k > (left + right) / 2
    ax.annotate(
        text, (k, 0.97), xycoords=("data", "axes fraction"), xytext=(-5 if inner else 5, 0), textcoords="offset points",
        ha="right" if inner else "left", va="top", color=MARK, fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0},
    )  # fmt: skip
    return line
