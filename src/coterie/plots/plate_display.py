"""Plate diagram of a mixture."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from coterie.errors import ParameterError
from coterie.families import Product, as_family
from coterie.families.structures import as_structure
from coterie.mixture.bayesian_mixture import BayesianGaussianMixture
from coterie.mixture.family_mixture import Mixture
from coterie.mixture.gaussian_mixture import GaussianMixture
from coterie.palette import FAINT, INK
from coterie.plots.display import Display, caption

RADIUS = 0.30  # of the circle of a variable
DOT = 0.10  # radius of the dot of a constant
STEP = 0.95  # vertical distance of nodes
COLUMNS = {"alpha": 0.0, "pi": 1.2, "z": 2.6, "x": 3.9, "parameter": 5.4, "constant": 6.7}

# The graphical model of a mixture: its variables, constants, dependencies and plates.

SUBSCRIPTS = "₁₂₃₄"  # of the families of a product that are drawn
PARAMETERS = {  # for each family: symbols of its parameters, and its conjugate prior
    "poisson": (("λ",), "Gamma"),
    "exponential": (("λ",), "Gamma"),
    "bernoulli": (("p",), "Beta"),
    "categorical": (("θ",), "Dirichlet"),
    "multinomial": (("θ",), "Dirichlet"),
    "gamma": (("a", "b"), None),
    "von_mises_fisher": (("μ", "κ"), None),
    "student_t": (("μ", "Σ", "ν"), None),
    "gaussian": (("μ", "Σ"), "normal-inverse-Wishart"),
}


@dataclass(frozen=True)
class Node:
    """A node with the role 'observed' (shaded circle), 'latent' or 'parameter' (open circle), or 'constant' (dot)."""

    name: str
    text: str
    role: str
    plates: tuple[str, ...] = ()  # 'N': repeated for each row; 'K': for each component


@dataclass
class Graph:
    nodes: list[Node] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)  # from, to
    rows: str = "N"  # number of rows, or 'N'
    components: str = ""  # number of components
    formula: list[str] = field(default_factory=list)  # distributions of the variables

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    def add(self, name: str, text: str, role: str, plates: str = "", to: Sequence[str] = ()) -> None:
        """Add a node, repeated for each of the plates, and its edges."""
        self.nodes.append(Node(name, text, role, tuple(plates)))
        self.edges += [(name, end) for end in to]


def graph_of(model: Any) -> Graph:
    """Return the graphical model of a mixture estimator, fitted or not."""
    labels = getattr(model, "labels_", None)
    graph = Graph(rows="N" if labels is None else f"{len(labels):,}")
    if isinstance(model, BayesianGaussianMixture):
        _add_bayesian(graph, model)
    elif isinstance(model, GaussianMixture):
        _add_gaussian(graph, model)
    elif isinstance(model, Mixture):
        _add_families(graph, model)
    else:
        raise ParameterError(
            f"model must be a GaussianMixture, BayesianGaussianMixture or Mixture; got {type(model).__name__}"
        )
    return graph


def _add_rows(graph: Graph, observed: dict[str, str]) -> None:
    """Add the components of the rows, and their variables: texts by name."""
    graph.add("z", "z", "latent", "N", to=list(observed))
    for name, text in observed.items():
        graph.add(name, text, "observed", "N")


def _add_gaussian(graph: Graph, model: GaussianMixture) -> None:
    fixed = (model.fixed,) if isinstance(model.fixed, str) else tuple(model.fixed)
    roles = {name: "constant" if name in fixed else "parameter" for name in ("weights", "means", "covariances")}
    graph.components = str(model.n_components)
    graph.formula += ["z ~ Categorical(π)", "x | z = k ~ N(μₖ, Σₖ)"]
    _add_rows(graph, {"x": "x"})
    graph.add("pi", "π", roles["weights"], to=["z"])
    graph.add("mu", "μ", roles["means"], "K", to=["x"])
    parts = _add_covariance(graph, as_structure(model.covariance_type).name, roles["covariances"])
    if model.prior is not None:
        _add_conjugate(graph, model.prior, parts, fixed)


def _add_covariance(graph: Graph, name: str, role: str) -> list[str]:
    """Add a node for each part of the covariance: volume λ, shape A, orientation D; one for Σ if all are alike."""
    if name in ("VVV", "EEE"):
        graph.add("sigma", "Σ", role, "K" if name == "VVV" else "", to=["x"])
        graph.formula += [] if name == "VVV" else ["Σₖ = Σ"]
        return ["sigma"]
    texts = zip(("volume", "shape", "orientation"), ("λ", "A", "D"), name, strict=True)
    parts = [(part, text, letter) for part, text, letter in texts if letter != "I"]
    for part, text, letter in parts:
        graph.add(part, text, role, "K" if letter == "V" else "", to=["x"])
    volume, shape, orientation = ({"V": "ₖ", "E": "", "I": None}[letter] for letter in name)
    if shape is None:
        graph.formula.append(f"Σₖ = λ{volume} I")
    elif orientation is None:
        graph.formula.append(f"Σₖ = λ{volume} A{shape}, A diagonal")
    else:
        graph.formula.append(f"Σₖ = λ{volume} D{orientation} A{shape} D{orientation}ᵀ")
    return [part for part, _, _ in parts]


def _add_conjugate(graph: Graph, prior: Any, spreads: list[str], fixed: tuple[str, ...]) -> None:
    """Add the prior: Dirichlet on weights, unless it is flat, and normal-inverse-Wishart on means and covariances."""
    if "weights" not in fixed and np.any(np.asarray(getattr(prior, "concentration", 1.0)) != 1.0):
        graph.add("alpha", "α", "constant", to=["pi"])
        graph.formula.append("π ~ Dirichlet(α)")
    if "means" not in fixed:
        graph.add("m0", "m₀", "constant", to=["mu"])
        graph.add("kappa0", "κ₀", "constant", to=["mu"])
        graph.edges += [(name, "mu") for name in spreads]
        graph.formula.append("μₖ ~ N(m₀, Σₖ / κ₀)")
    if "covariances" not in fixed:
        graph.add("nu0", "ν₀", "constant", to=spreads)
        graph.add("s0", "S₀", "constant", to=spreads)
        graph.formula.append("Σₖ ~ inverse Wishart(ν₀, S₀)")


def _add_bayesian(graph: Graph, model: BayesianGaussianMixture) -> None:
    is_process = model.weight_concentration_prior_type == "dirichlet_process"
    is_tied = model.covariance_type == "tied"
    graph.components = str(model.n_components)
    _add_rows(graph, {"x": "x"})
    graph.add("alpha", "α", "constant", to=["pi"])
    graph.add("pi", "v" if is_process else "π", "parameter", "K" if is_process else "", to=["z"])
    graph.add("mu", "μ", "parameter", "K", to=["x"])
    graph.add("sigma", "Λ", "parameter", "" if is_tied else "K", to=["x"])
    graph.add("m0", "m₀", "constant", to=["mu"])
    graph.add("kappa0", "κ₀", "constant", to=["mu"])
    graph.edges.append(("sigma", "mu"))
    graph.add("nu0", "ν₀", "constant", to=["sigma"])
    graph.add("s0", "W₀", "constant", to=["sigma"])
    precision, kinds = "Λ" if is_tied else "Λₖ", {"diag": "Gamma, each column,", "spherical": "Gamma"}
    graph.formula += [
        *(("vₖ ~ Beta(1, α)", "πₖ = vₖ (1 − v₁) ⋯ (1 − vₖ₋₁)") if is_process else ("π ~ Dirichlet(α)",)),
        "z ~ Categorical(π)",
        f"x | z = k ~ N(μₖ, {precision}⁻¹)",
        f"μₖ ~ N(m₀, (κ₀ {precision})⁻¹)",
        f"{precision} ~ {kinds.get(model.covariance_type, 'Wishart')}(ν₀, W₀)",
    ]


def _add_families(graph: Graph, model: Mixture) -> None:
    family = as_family(model.family)
    family = family if model.prior is None else family.with_prior(model.prior)
    groups = [one for one, _ in family.families] if isinstance(family, Product) else [family]
    subscripts = SUBSCRIPTS[: len(groups)] if len(groups) > 1 else [""]
    _add_rows(graph, {f"x{g}": f"x{subscript}" for g, subscript in enumerate(subscripts)})
    is_auto = model.n_components == "auto"
    graph.components = str(getattr(model, "n_components_", "∞")) if is_auto else str(model.n_components)
    if is_auto or np.any(np.asarray(model.concentration) != 1.0):
        graph.add("alpha", "α", "constant", to=["pi"])
        graph.formula.append("π ~ stick-breaking(α)" if is_auto else "π ~ Dirichlet(α)")
    graph.add("pi", "π", "parameter", to=["z"])
    graph.formula.append("z ~ Categorical(π)")
    for g, (one, subscript) in enumerate(zip(groups, subscripts, strict=False)):
        _add_family(graph, one, f"x{g}", subscript)
    if len(groups) > len(subscripts):
        graph.formula.append(f"and {len(groups) - len(subscripts)} more families of columns")


def _add_family(graph: Graph, family: Any, x: str, subscript: str) -> None:
    symbols, conjugate = PARAMETERS.get(family.name, (("θ",), None))
    texts = [symbol + subscript for symbol in symbols]
    names = [symbol + x.removeprefix("x") for symbol in symbols]
    for name, text in zip(names, texts, strict=True):
        graph.add(name, text, "parameter", "K", to=[x])
    inner = ", ".join(text if subscript else f"{text}ₖ" for text in texts)
    graph.formula.append(f"x{subscript} | z = k ~ {type(family).__name__}({inner})")
    if getattr(family, "prior", None) is not None and conjugate:
        graph.add(f"prior{x.removeprefix('x')}", f"η₀{subscript}", "constant", to=names)
        graph.formula.append(f"{', '.join(texts)} ~ {conjugate}(η₀{subscript})")


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
