"""The plate diagram of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.palette import FAINT, INK
from coterie.plots.display import Display, caption
from coterie.plots.graph import Graph, Node, graph_of

RADIUS = 0.30  # of a circle
DOT = 0.10  # of what is known
STEP = 0.95  # between nodes on top of each other
COLUMNS = {"alpha": 0.0, "pi": 1.2, "z": 2.6, "x": 3.9, "parameter": 5.4, "constant": 6.7}


@dataclass(eq=False, repr=False)
class PlateDisplay(Display):
    """Circles for quantities, shaded where observed, dots for constants; arrows from what a quantity depends on to it;
    plates around what is there once a row or once a component."""

    kind: ClassVar[str] = "plate"
    graph: Graph
    places: dict[str, tuple[float, float]]  # of the nodes

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Of a mixture, fitted or not, by its options; `X` is not looked at."""
        graph = graph_of(model)
        return cls(graph, _places(graph))._on(ax)

    def _figure_size(self) -> tuple[float, float]:
        x, y = self._ends()
        return 1.0 + 0.95 * (x[1] - x[0]), 0.6 + 0.95 * (y[1] - y[0])

    def _ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        x, y = zip(*self.places.values(), strict=True)
        return (min(x) - 0.6, max(x) + 0.9), (min(y) - 0.9 - 0.3 * len(self.graph.formula), max(y) + 1.0)

    def _draw(self, ax: Any) -> None:
        self.plates_ = [self._draw_plate(ax, "N", f"i = 1 … {self.graph.rows}")]
        self.plates_.append(self._draw_plate(ax, "K", f"k = 1 … {self.graph.components}"))
        self.circles_ = {node.name: self._draw_node(ax, node) for node in self.graph.nodes}
        self.arrows_ = [self._draw_arrow(ax, start, end) for start, end in self.graph.edges]
        (left, right), (low, high) = self._ends()
        self.formula_ = ax.text(
            left + 0.2, low + 0.3 * len(self.graph.formula), "\n".join(self.graph.formula), fontsize=9, va="top",
            linespacing=1.5, color=INK,
        )  # fmt: skip
        ax.set(xlim=(left, right), ylim=(low, high), aspect="equal")
        ax.axis("off")
        caption(ax, "shaded: observed; circles: inferred; dots: given")

    def _draw_node(self, ax: Any, node: Node) -> Any:
        from matplotlib.patches import Circle

        x, y = self.places[node.name]
        constant = node.role == "constant"
        fill = INK if constant else FAINT if node.role == "observed" else "white"
        circle = Circle((x, y), _radius(node), facecolor=fill, edgecolor=INK, linewidth=1.3, zorder=3)
        lower = "ᵢ" if "N" in node.plates else "ₖ" if "K" in node.plates else ""
        if constant and x < COLUMNS["z"]:
            ax.text(x, y + DOT + 0.06, node.text + lower, ha="center", va="bottom", fontsize=11, color=INK, zorder=4)
        elif constant:
            ax.text(x + DOT + 0.07, y, node.text + lower, ha="left", va="center", fontsize=11, color=INK, zorder=4)
        else:
            ax.text(x, y, node.text + lower, ha="center", va="center", fontsize=12, color=INK, zorder=4)
        return ax.add_patch(circle)

    def _draw_arrow(self, ax: Any, start: str, end: str) -> Any:
        from matplotlib.patches import FancyArrowPatch

        (x, y), (x_end, y_end) = self.places[start], self.places[end]
        around = x == x_end and abs(y - y_end) > 1.2 * STEP  # another node is between them
        arrow = FancyArrowPatch(
            (x, y), (x_end, y_end), arrowstyle="-|>", mutation_scale=12, color=INK, linewidth=1.1, zorder=2,
            patchA=self.circles_[start], patchB=self.circles_[end], shrinkA=1, shrinkB=1,
            connectionstyle="arc3,rad=0.45" if around else "arc3",
        )  # fmt: skip
        return ax.add_patch(arrow)

    def _draw_plate(self, ax: Any, plate: str, text: str) -> Any:
        from matplotlib.patches import FancyBboxPatch

        inside = [self.places[node.name] for node in self.graph.nodes if plate in node.plates]
        groups = _runs(inside)
        drawn = []
        for places in groups:
            x, y = zip(*places, strict=True)
            below = 0.78 if plate == "N" else 0.5  # the other side has room for the text
            left, low = min(x) - 0.5, min(y) - below
            width, height = max(x) - min(x) + 1.0, max(y) - min(y) + 1.28
            box = FancyBboxPatch(
                (left, low), width, height, boxstyle="round,pad=0,rounding_size=0.12", facecolor="none", edgecolor=INK,
                linewidth=1.0, zorder=1,
            )  # fmt: skip
            drawn.append(ax.add_patch(box))
            at = low + 0.07 if plate == "N" else low + height - 0.27
            ax.text(left + width - 0.08, at, text, ha="right", va="bottom", fontsize=8.5, color=INK)
        return drawn


def _runs(places: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Places beside each other: a plate is drawn around each run, so that it holds nothing else."""
    left = [place for place in places if place[0] < COLUMNS["z"]]
    right = [place for place in places if place[0] >= COLUMNS["z"]]
    return [run for run in (left, right) if run]


def _radius(node: Node) -> float:
    return DOT if node.role == "constant" else RADIUS


def _places(graph: Graph) -> dict[str, tuple[float, float]]:
    """Weights at the left, rows in the middle, components and what is known of them at the right."""
    observed = [node.name for node in graph.nodes if node.role == "observed"]
    components = [
        node.name for node in graph.nodes if node.name not in ("alpha", "pi", "z") and node.name not in observed
    ]
    fed = {start for start, end in graph.edges if end not in observed and end not in ("pi", "z")} - {
        node.name for node in graph.nodes if node.role == "parameter"
    }
    own = [name for name in components if name not in fed]
    own.sort(key=lambda name: "K" not in graph.node(name).plates)
    places = {"pi": (COLUMNS["pi"], 0.0), "z": (COLUMNS["z"], 0.0)}
    if any(node.name == "alpha" for node in graph.nodes):
        places["alpha"] = (COLUMNS["alpha"], 0.0)
    places |= _column(observed, COLUMNS["x"])
    shared = [name for name in own if "K" not in graph.node(name).plates]
    places |= _column(
        own, COLUMNS["parameter"], extra=0.45 if 0 < len(shared) < len(own) else 0.0, after=len(own) - len(shared)
    )
    places |= _column([node.name for node in graph.nodes if node.name in fed], COLUMNS["constant"])
    return places


def _column(names: list[str], x: float, extra: float = 0.0, after: int = 0) -> dict[str, tuple[float, float]]:
    """One below the other, about the middle; `extra` room after the first `after`."""
    depth = [i * STEP + (extra if i >= after else 0.0) for i in range(len(names))]
    middle = (depth[-1] if depth else 0.0) / 2
    return {name: (x, middle - down) for name, down in zip(names, depth, strict=True)}


def plate(model: Any, *, ax: Any = None) -> Any:
    """Draw the graphical model of a mixture: what is drawn from what, once a row and once a component.

    It is made of the options: which parts of the covariances components share, what has a prior, what is held fixed.
    A fitted mixture says how many rows it has seen.

    Parameters
    ----------
    model : GaussianMixture, BayesianGaussianMixture or Mixture
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from coterie import GaussianMixture, plots
    >>> ax = plots.plate(GaussianMixture(3, covariance_type="EEE", prior="default"))
    >>> "Σₖ = Σ" in ax.texts[-1].get_text()
    True
    """
    return PlateDisplay.from_estimator(model, ax=ax).ax_
