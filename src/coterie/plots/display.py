"""What all figures share: numbers that are kept, and a drawing of them that is made when it is asked for."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from textwrap import fill
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.errors import ParameterError

Array = np.ndarray[Any, Any]

LINE = 64  # letters of a caption before it goes on below


class Display:
    """A figure as plain numbers, in the manner of scikit-learn's displays.

    A subclass is a dataclass of arrays, texts and numbers: all that the picture shows. `plot` draws them with
    matplotlib, `to_dict` hands them to any other renderer. `ax_`, `figure_` and the artists are there after `plot`;
    asked for earlier, they are drawn into a figure of their own. Nothing is shown, and pyplot knows nothing of it.
    """

    kind: ClassVar[str]  # what it shows, in one word
    size: ClassVar[tuple[float, float]] = (6.4, 4.6)  # of a figure of its own, in inches

    def plot(self, ax: Any = None) -> Self:
        """Draw into the matplotlib Axes `ax`, or into a new figure; the display has `ax_` and `figure_` then."""
        ax = self._new_axes() if ax is None else check_axes("ax", ax)
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def to_dict(self) -> dict[str, Any]:
        """All numbers as lists, texts and None (for what is not finite): what JSON can hold."""
        return {"kind": self.kind, **{field.name: plain(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = ", ".join(f"{field.name}={brief(getattr(self, field.name))}" for field in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({parts})"

    def _figure_size(self) -> tuple[float, float]:
        return self.size

    def _new_axes(self) -> Any:
        return new_figure(self._figure_size(), layout="constrained").subplots()

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError

    def _on(self, ax: Any) -> Self:
        """Drawn at once if there is something to draw into; else when it is asked for."""
        return self if ax is None else self.plot(ax)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not name.endswith("_") or "ax_" in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.plot(), name)

    def _repr_png_(self) -> bytes:
        """How notebooks show it."""
        from io import BytesIO

        written = BytesIO()
        self.figure_.savefig(written, format="png", dpi=100)
        return written.getvalue()


def check_axes(name: str, ax: Any) -> Any:
    """`ax`, if it is one that can be drawn into."""
    if not hasattr(ax, "get_figure"):
        raise ParameterError(f"{name} must be one matplotlib Axes; got {type(ax).__name__}")
    if getattr(ax, "name", "") in ("3d", "polar"):
        raise ParameterError(f"{name} must be flat, with straight axes; got {ax.name} Axes: leave out the projection")
    return ax


def check_result(name: str, value: Any, kinds: tuple[type, ...], makers: str) -> Any:
    """`value`, if it is of one of the kinds that `makers` return."""
    if not isinstance(value, kinds):
        raise ParameterError(f"{name} must be what {makers} returns; got {type(value).__name__}")
    return value


def new_figure(size: tuple[float, float], **options: Any) -> Any:
    """A figure that pyplot does not know of; an error says what to install where there is no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('figures need matplotlib: pip install "coterie[plot]"') from None
    return Figure(figsize=size, **options)


def plain(value: Any) -> Any:
    """Arrays, tuples and dataclasses as lists and dicts, numbers as Python's; None for NaN and infinity."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [plain(item) for item in value]
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def brief(value: Any) -> str:
    """Numbers and short texts as they are, of others the shape or the length."""
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} numbers>"
    if isinstance(value, list | tuple | dict):
        return f"<{len(value)}>"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    return repr(value)


def counted(n: float, what: str = "row") -> str:
    """1 row, 2 rows, 1,000 rows."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def amount(size: float, weighted: bool) -> str:
    """How much a cluster has: rows, or weight."""
    return f"weight {rounded(float(size))}" if weighted else counted(int(size))


def short(text: str, most: int) -> str:
    """No more than `most` letters of a name, and a sign that there are more."""
    return text if len(text) <= most else text[: most - 1] + "…"


def rounded(value: float) -> str:
    """Three digits, or all before the point of numbers that people still read."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def plain_numbers(axis: Any) -> None:
    """Ticks with whole numbers beside them, not with what is to be added to all."""
    from matplotlib.ticker import ScalarFormatter

    axis.set_major_formatter(ScalarFormatter(useOffset=False))


def caption(ax: Any, text: str) -> None:
    """What the picture is, above it, to the left."""
    ax.set_title(fill(text, LINE), loc="left", fontsize=10)
