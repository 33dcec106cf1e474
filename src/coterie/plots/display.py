"""The base class of all figures, which separates data from drawing, and helpers for text and numbers."""

import sys
from dataclasses import fields, is_dataclass
from textwrap import fill
from typing import Any, ClassVar, Self

import numpy as np

from coterie.core.formatting import count
from coterie.core.protocols import is_estimator
from coterie.errors import ParameterError

LINE = 64  # characters in a line of a caption


class Display:
    """The data of a figure, like the displays of scikit-learn.

    A subclass is a dataclass of the arrays, strings and numbers that the figure shows. `plot` draws them with
    matplotlib; `to_dict` returns them for another renderer. `plot` sets `ax_`, `figure_` and the artists. Accessing one
    of these attributes earlier draws into a new figure. The figure is not registered with pyplot: a notebook shows the
    display in the last line of a cell, and nothing else does. Other attributes, such as `set_title`, are of `ax_`.
    """

    kind: ClassVar[str]  # type of the figure, in one word
    size: ClassVar[tuple[float, float]] = (6.4, 4.6)  # size of a new figure, in inches

    def plot(self, ax: Any = None) -> Self:
        """Draw into the matplotlib Axes `ax`, or into a new figure, and set `ax_` and `figure_`."""
        ax = self._new_axes() if ax is None else check_axes("ax", ax)
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the data as numbers, strings and lists that JSON can hold; NaN and infinity become None."""
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

    def _plot_into(self, ax: Any) -> Self:
        """Draw now if `ax` is given; otherwise when an attribute such as `ax_` is accessed."""
        return self if ax is None else self.plot(ax)

    def _drawn(self) -> Self:
        """The display, drawn now if it is not yet, so that errors are those of the call."""
        return self if "ax_" in self.__dict__ else self.plot()

    def __getattr__(self, name: str) -> Any:
        is_artist = name.endswith("_")
        if name.startswith("_") or (is_artist and "ax_" in self.__dict__):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.plot() if is_artist else self.ax_, name)

    def _repr_png_(self) -> bytes | None:
        """PNG for notebooks; None if matplotlib shows the figure itself at the end of the cell."""
        from io import BytesIO

        if is_shown_by_backend(self.figure_):
            return None
        file = BytesIO()
        self.figure_.savefig(file, format="png", dpi=100)
        return file.getvalue()


def is_shown_by_backend(figure: Any) -> bool:
    """Whether the figure is of pyplot, and its backend shows all figures of pyplot in a notebook."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or getattr(figure, "number", None) not in pyplot.get_fignums():
        return False
    backend = pyplot.get_backend().lower()
    return any(name in backend for name in ("inline", "ipympl", "nbagg", "widget"))


def drawn_display(display: Any, result: Any, X: Any, **options: Any) -> Any:
    """Draw the display of a fitted estimator, or of labels or shares of the rows, and return it."""
    if is_estimator(result):
        return display.from_estimator(result, X, **options)._drawn()
    return display.from_predictions(X, result, **options)._drawn()


def check_axes(name: str, ax: Any) -> Any:
    """Return `ax`, or raise an error if it cannot be drawn into."""
    if not hasattr(ax, "get_figure"):
        raise ParameterError(f"{name} must be one matplotlib Axes; got {type(ax).__name__}")
    if getattr(ax, "name", "") in ("3d", "polar"):
        raise ParameterError(
            f"{name} must be Axes with two straight axes; got {ax.name} Axes: create them without a projection"
        )
    return ax


def check_result(name: str, value: Any, types: tuple[type, ...], functions: str) -> Any:
    """Return `value`, or raise an error if it is not of one of the types that `functions` return."""
    if not isinstance(value, types):
        raise ParameterError(f"{name} must be the result of {functions}; got {type(value).__name__}")
    return value


def new_figure(size: tuple[float, float], **options: Any) -> Any:
    """Create a figure that is not registered with pyplot; an error says how to install matplotlib if it is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('figures need matplotlib: pip install "coterie[plot]"') from None
    return Figure(figsize=size, **options)


def plain(value: Any) -> Any:
    """Convert arrays, tuples and dataclasses to lists and dicts of Python numbers; NaN and infinity become None."""
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
    """Return the repr of numbers and strings, and the shape or length of everything else."""
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} numbers>"
    if isinstance(value, list | tuple | dict):
        return f"<{len(value)}>"
    if is_dataclass(value):
        return f"<{type(value).__name__}>"
    return repr(value)


def amount(size: float, weighted: bool) -> str:
    """Format the size of a cluster: rows, or weight."""
    return f"weight {format_number(float(size))}" if weighted else count(int(size))


def format_number(value: float) -> str:
    """Format with three significant digits, or as a whole number from 1,000 to 10 million."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def label_axes(ax: Any, x: str, y: str) -> None:
    """Label both axes, and leave out the frame at the top and at the right."""
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)


def plain_numbers(axis: Any) -> None:
    """Label ticks with full numbers, without matplotlib's common offset."""
    from matplotlib.ticker import ScalarFormatter

    axis.set_major_formatter(ScalarFormatter(useOffset=False))


def caption(ax: Any, text: str) -> None:
    """Write a caption above the figure, at the left."""
    ax.set_title(fill(text, LINE), loc="left", fontsize=10)
