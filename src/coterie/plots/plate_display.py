"""Plate diagram of a mixture."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from coterie.palette import FAINT, INK
from coterie.plots.display import Display, caption
from coterie.plots.graphical_model import Graph, Node, graph_of

RADIUS = 0.30  # of the circle of a variable
DOT = 0.10  # radius of the dot of a constant
STEP = 0.95  # vertical distance of nodes
COLUMNS = {"alpha": 0.0, "pi": 1.2, "z": 2.6, "x": 3.9, "parameter": 5.4, "constant": 6.7}


@dataclass(eq=False, repr=False)
class PlateDisplay(Display):
    """The graphical model of a mixture.

    Circles are variables (shaded if observed), dots are constants, and arrows are dependencies. A plate surrounds
    variables that are repeated for each row or each component.
    """

    kind: ClassVar[str] = "plate"
    graph: Graph
    places: dict[str, tuple[float, float]]  # position of each node

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, ax: Any = None) -> Self:
        """Plate diagram of a mixture, fitted or not, from its parameters; `X` is ignored."""
        graph = graph_of(model)
        return cls(graph, _places(graph))._plot_into(ax)

    def _figure_size(self) -> tuple[float, float]:
        x, y = self._limits()
        return 1.0 + 0.95 * (x[1] - x[0]), 0.6 + 0.95 * (y[1] - y[0])

    def _limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        x, y = zip(*self.places.values(), strict=True)
        return (min(x) - 0.6, max(x) + 0.9), (min(y) - 0.9 - 0.3 * len(self.graph.formula), max(y) + 1.0)

    def _draw(self, ax: Any) -> None:
        self.plates_ = [self._draw_plate(ax, "N", f"i = 1 … {self.graph.rows}")]
        self.plates_.append(self._draw_plate(ax, "K", f"k = 1 … {self.graph.components}"))
        self.circles_ = {node.name: self._draw_node(ax, node) for node in self.graph.nodes}
        self.arrows_ = [self._draw_arrow(ax, start, end) for start, end in self.graph.edges]
        (left, right), (low, high) = self._limits()
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
        is_constant = node.role == "constant"
        fill = INK if is_constant else FAINT if node.role == "observed" else "white"
        circle = Circle((x, y), DOT if is_constant else RADIUS, facecolor=fill, edgecolor=INK, linewidth=1.3, zorder=3)
        text = node.text + ("ᵢ" if "N" in node.plates else "ₖ" if "K" in node.plates else "")
        style = {"color": INK, "zorder": 4, "fontsize": 11 if is_constant else 12}
        if is_constant and x < COLUMNS["z"]:
            ax.text(x, y + DOT + 0.06, text, ha="center", va="bottom", **style)
        elif is_constant:
            ax.text(x + DOT + 0.07, y, text, ha="left", va="center", **style)
        else:
            ax.text(x, y, text, ha="center", va="center", **style)
        return ax.add_patch(circle)

    def _draw_arrow(self, ax: Any, start: str, end: str) -> Any:
        from matplotlib.patches import FancyArrowPatch

        (x, y), (x_end, y_end) = self.places[start], self.places[end]
        is_blocked = x == x_end and abs(y - y_end) > 1.2 * STEP  # another node is between them
        arrow = FancyArrowPatch(
            (x, y), (x_end, y_end), arrowstyle="-|>", mutation_scale=12, color=INK, linewidth=1.1, zorder=2,
            patchA=self.circles_[start], patchB=self.circles_[end], shrinkA=1, shrinkB=1,
            connectionstyle="arc3,rad=0.45" if is_blocked else "arc3",
        )  # fmt: skip
        return ax.add_patch(arrow)

    def _draw_plate(self, ax: Any, plate: str, text: str) -> Any:
        from matplotlib.patches import FancyBboxPatch

        members = [self.places[node.name] for node in self.graph.nodes if plate in node.plates]
        left_members = [place for place in members if place[0] < COLUMNS["z"]]
        right_members = [place for place in members if place[0] >= COLUMNS["z"]]
        boxes = []
        for places in filter(None, (left_members, right_members)):  # separate plates contain no other nodes
            x, y = zip(*places, strict=True)
            below = 0.78 if plate == "N" else 0.5  # the text is on the other side
            left, low = min(x) - 0.5, min(y) - below
            width, height = max(x) - min(x) + 1.0, max(y) - min(y) + 1.28
            box = FancyBboxPatch(
                (left, low), width, height, boxstyle="round,pad=0,rounding_size=0.12", facecolor="none", edgecolor=INK,
                linewidth=1.0, zorder=1,
            )  # fmt: skip
            boxes.append(ax.add_patch(box))
            at = low + 0.07 if plate == "N" else low + height - 0.27
            ax.text(left + width - 0.08, at, text, ha="right", va="bottom", fontsize=8.5, color=INK)
        return boxes


def _places(graph: Graph) -> dict[str, tuple[float, float]]:
    """Return positions: weights at the left, rows in the middle, parameters and constants at the right."""
    observed = [node.name for node in graph.nodes if node.role == "observed"]
    components = [node.name for node in graph.nodes if node.name not in ("alpha", "pi", "z", *observed)]
    priors = {start for start, end in graph.edges if end not in observed and end not in ("pi", "z")} - {
        node.name for node in graph.nodes if node.role == "parameter"
    }
    parameters = [name for name in components if name not in priors]
    parameters.sort(key=lambda name: "K" not in graph.node(name).plates)
    places = {"pi": (COLUMNS["pi"], 0.0), "z": (COLUMNS["z"], 0.0)}
    if any(node.name == "alpha" for node in graph.nodes):
        places["alpha"] = (COLUMNS["alpha"], 0.0)
    places |= _column(observed, COLUMNS["x"])
    shared = [name for name in parameters if "K" not in graph.node(name).plates]
    extra = 0.45 if 0 < len(shared) < len(parameters) else 0.0
    places |= _column(parameters, COLUMNS["parameter"], extra, after=len(parameters) - len(shared))
    places |= _column([node.name for node in graph.nodes if node.name in priors], COLUMNS["constant"])
    return places


def _column(names: list[str], x: float, extra: float = 0.0, after: int = 0) -> dict[str, tuple[float, float]]:
    """Return positions in a centered column, with `extra` space after the first `after` nodes."""
    depth = [i * STEP + (extra if i >= after else 0.0) for i in range(len(names))]
    middle = (depth[-1] if depth else 0.0) / 2
    return {name: (x, middle - down) for name, down in zip(names, depth, strict=True)}


def plate(model: Any, *, ax: Any = None) -> Any:
    """Draw the graphical model of a mixture in plate notation.

    The diagram follows from the parameters of the estimator: which parts of the covariances are shared by all
    components, which parameters have a prior, and which are fixed. For a fitted mixture, it includes the number of
    rows.

    Parameters
    ----------
    model : GaussianMixture, BayesianGaussianMixture or Mixture
        The mixture, fitted or not.
    ax : matplotlib Axes or None, default=None
        Axes to draw into. None creates a new figure.

    Returns
    -------
    PlateDisplay
        Notebooks show it as a picture. `ax_` and `figure_` are its Axes and figure.

    Examples
    --------
    >>> from coterie import GaussianMixture, plots
    >>> ax = plots.plate(GaussianMixture(3, covariance_type="EEE", prior="default"))
    >>> "Σₖ = Σ" in ax.texts[-1].get_text()
    True
    """
    return PlateDisplay.from_estimator(model, ax=ax)._drawn()
