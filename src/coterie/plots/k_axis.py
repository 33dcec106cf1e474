"""Figures over the number of clusters K: the results that they show, and the axis of K."""

from typing import Any

from coterie.core.arrays import Array
from coterie.errors import ParameterError
from coterie.palette import MARK
from coterie.plots.display import check_result, label_axes, plain_numbers
from coterie.selection.choose_k_result import ChooseK

TICKS = 14  # maximum number of ticks


def result_of(value: Any, kind: type, function: str, keys: tuple[str, ...], criteria: str) -> Any:
    """Return `value`, a result of `function`, or the first of the results `keys` that a `ChooseK` contains."""
    check_result("result", value, (kind, ChooseK), f"{function} or choose_k")
    results = [value.results.get(key) for key in keys] if isinstance(value, ChooseK) else [value]
    result = next((each for each in results if each is not None), None)
    if result is None:
        problem = f"the result of choose_k has no {keys[0]}"
        raise ParameterError(f"{problem}: call choose_k with criteria that include {criteria}")
    return result


def label_k_axis(ax: Any, ks: Array, label: str) -> None:
    """Set labels and ticks of a curve over K."""
    label_axes(ax, "number of clusters K", label)
    set_k_ticks(ax, ks)
    plain_numbers(ax.yaxis)


def set_k_ticks(ax: Any, ks: Array, limit: int = TICKS) -> None:
    """Set ticks at the first K, and at each later K that is far enough from the previous tick."""
    low, high = float(min(ks)), float(max(ks))
    padding = max(0.05 * (high - low), 0.6)
    ax.set_xlim(low - padding, high + padding)
    distance, shown = (high - low) / limit, [int(ks[0])]
    for k in ks[1:]:
        if k - shown[-1] >= distance:
            shown.append(int(k))
    ax.set_xticks(shown)


def mark_k(ax: Any, ks: Array, values: Array, k: float | None, text: str) -> Any:
    """Mark the recommended K of a curve with a dashed line, a circle and a text; do nothing if `k` is None."""
    if k is None:
        return None
    line = ax.axvline(k, color=MARK, linestyle="--", linewidth=1.2, zorder=1)
    ax.plot([k], values[ks == k], "o", markersize=11, markerfacecolor="none", markeredgewidth=1.6, color=MARK, zorder=4)
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    ax.set_ylim(low, high + 0.1 * (high - low))  # space for the text
    is_right = k > (left + right) / 2
    ax.annotate(
        text, (k, 0.97), xycoords=("data", "axes fraction"), xytext=(-5 if is_right else 5, 0),
        textcoords="offset points", ha="right" if is_right else "left", va="top", color=MARK, fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0},
    )  # fmt: skip
    return line
