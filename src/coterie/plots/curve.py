"""What figures over the number of clusters share."""

from __future__ import annotations

from typing import Any

from coterie.palette import MARK


def over_k(ax: Any, label: str) -> None:
    """Whole numbers along K, no frame on the right."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("number of clusters K")
    ax.set_ylabel(label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12))
    ax.spines[["top", "right"]].set_visible(False)


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
