"""The graphical model of a mixture: its variables, constants, dependencies and plates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.errors import ParameterError
from coterie.families import Product, as_family
from coterie.families.structures import as_structure
from coterie.mixture.bayesian_mixture import BayesianGaussianMixture
from coterie.mixture.family_mixture import Mixture
from coterie.mixture.gaussian_mixture import GaussianMixture

GROUPS = 4  # maximum number of families of a product that are drawn
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


@dataclass(frozen=True)
class Graph:
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str], ...]  # from, to
    rows: str  # number of rows, or 'N'
    components: str  # number of components
    formula: tuple[str, ...]  # distributions of the variables

    def node(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)


def graph_of(model: Any) -> Graph:
    """Return the graphical model of a mixture estimator, fitted or not."""
    if isinstance(model, BayesianGaussianMixture):
        return _bayesian(model)
    if isinstance(model, GaussianMixture):
        return _gaussian(model)
    if isinstance(model, Mixture):
        return _of_families(model)
    raise ParameterError(
        f"model must be a GaussianMixture, BayesianGaussianMixture or Mixture; got {type(model).__name__}"
    )


def _n_rows(model: Any) -> str:
    labels = getattr(model, "labels_", None)
    return "N" if labels is None else f"{len(labels):,}"


def _core(
    observed: tuple[Node, ...] = (Node("x", "x", "observed", ("N",)),),
) -> tuple[list[Node], list[tuple[str, str]]]:
    """Return the nodes and edges of the rows and their components."""
    nodes = [Node("z", "z", "latent", ("N",)), *observed]
    return nodes, [("z", node.name) for node in observed]


def _gaussian(model: GaussianMixture) -> Graph:
    nodes, edges = _core()
    fixed = (model.fixed,) if isinstance(model.fixed, str) else tuple(model.fixed)
    role = lambda name: "constant" if name in fixed else "parameter"  # noqa: E731
    formula = ["z ~ Categorical(π)", "x | z = k ~ N(μₖ, Σₖ)"]
    nodes += [Node("pi", "π", role("weights")), Node("mu", "μ", role("means"), ("K",))]
    edges += [("pi", "z"), ("mu", "x")]
    parts, equation = _covariance(as_structure(model.covariance_type).name, role("covariances"))
    nodes += parts
    edges += [(part.name, "x") for part in parts]
    if equation:
        formula.append(equation)
    if model.prior is not None:
        _conjugate(model.prior, nodes, edges, formula, [part.name for part in parts], fixed)
    return Graph(tuple(nodes), tuple(edges), _n_rows(model), str(model.n_components), tuple(formula))


def _covariance(name: str, role: str) -> tuple[list[Node], str]:
    """Return a node for each part of the covariance: volume λ, shape A, orientation D; one for Σ if all are alike."""
    if name in ("VVV", "EEE"):
        return [Node("sigma", "Σ", role, ("K",) if name == "VVV" else ())], "" if name == "VVV" else "Σₖ = Σ"
    texts = zip(("volume", "shape", "orientation"), ("λ", "A", "D"), name, strict=True)
    nodes = [Node(part, text, role, ("K",) if letter == "V" else ()) for part, text, letter in texts if letter != "I"]
    subscript = {letter: {"V": "ₖ", "E": "", "I": None}[letter] for letter in "VEI"}
    volume, shape, orientation = (subscript[letter] for letter in name)
    if shape is None:
        return nodes, f"Σₖ = λ{volume} I"
    if orientation is None:
        return nodes, f"Σₖ = λ{volume} A{shape}, A diagonal"
    return nodes, f"Σₖ = λ{volume} D{orientation} A{shape} D{orientation}ᵀ"


def _conjugate(
    prior: Any, nodes: list[Node], edges: list[tuple[str, str]], formula: list[str], spreads: list[str], fixed: Any
) -> None:
    """Add the prior: Dirichlet on weights, unless it is flat, and normal-inverse-Wishart on means and covariances."""
    if "weights" not in fixed and np.any(np.asarray(getattr(prior, "concentration", 1.0)) != 1.0):
        nodes.append(Node("alpha", "α", "constant"))
        edges.append(("alpha", "pi"))
        formula.append("π ~ Dirichlet(α)")
    if "means" not in fixed:
        nodes += [Node("m0", "m₀", "constant"), Node("kappa0", "κ₀", "constant")]
        edges += [("m0", "mu"), ("kappa0", "mu"), *((name, "mu") for name in spreads)]
        formula.append("μₖ ~ N(m₀, Σₖ / κ₀)")
    if "covariances" not in fixed:
        nodes += [Node("nu0", "ν₀", "constant"), Node("s0", "S₀", "constant")]
        edges += [(start, name) for start in ("nu0", "s0") for name in spreads]
        formula.append("Σₖ ~ inverse Wishart(ν₀, S₀)")


def _bayesian(model: BayesianGaussianMixture) -> Graph:
    nodes, edges = _core()
    is_process = model.weight_concentration_prior_type == "dirichlet_process"
    is_tied = model.covariance_type == "tied"
    nodes += [
        Node("alpha", "α", "constant"),
        Node("pi", "v" if is_process else "π", "parameter", ("K",) if is_process else ()),
        Node("mu", "μ", "parameter", ("K",)),
        Node("sigma", "Λ", "parameter", () if is_tied else ("K",)),
        *(Node(name, text, "constant") for name, text in (("m0", "m₀"), ("kappa0", "κ₀"), ("nu0", "ν₀"), ("s0", "W₀"))),
    ]
    edges += [("alpha", "pi"), ("pi", "z"), ("mu", "x"), ("sigma", "x"), ("m0", "mu"), ("kappa0", "mu")]
    edges += [("sigma", "mu"), ("nu0", "sigma"), ("s0", "sigma")]
    precision, kinds = "Λ" if is_tied else "Λₖ", {"diag": "Gamma, each column,", "spherical": "Gamma"}
    formula = (
        *(("vₖ ~ Beta(1, α)", "πₖ = vₖ (1 − v₁) ⋯ (1 − vₖ₋₁)") if is_process else ("π ~ Dirichlet(α)",)),
        "z ~ Categorical(π)",
        f"x | z = k ~ N(μₖ, {precision}⁻¹)",
        f"μₖ ~ N(m₀, (κ₀ {precision})⁻¹)",
        f"{precision} ~ {kinds.get(model.covariance_type, 'Wishart')}(ν₀, W₀)",
    )
    return Graph(tuple(nodes), tuple(edges), _n_rows(model), str(model.n_components), formula)


def _of_families(model: Mixture) -> Graph:
    family = as_family(model.family)
    family = family if model.prior is None else family.with_prior(model.prior)
    groups = [one for one, _ in family.families] if isinstance(family, Product) else [family]
    shown = groups[:GROUPS]
    has_several = len(groups) > 1
    rows = tuple(Node(f"x{g}", f"x{'₁₂₃₄'[g]}" if has_several else "x", "observed", ("N",)) for g in range(len(shown)))
    nodes, edges = _core(rows)
    is_auto = model.n_components == "auto"
    formula = ["z ~ Categorical(π)"]
    if is_auto or np.any(np.asarray(model.concentration) != 1.0):
        nodes.append(Node("alpha", "α", "constant"))
        edges.append(("alpha", "pi"))
        formula.insert(0, "π ~ stick-breaking(α)" if is_auto else "π ~ Dirichlet(α)")
    nodes.append(Node("pi", "π", "parameter"))
    edges.append(("pi", "z"))
    for g, one in enumerate(shown):
        _add_family(one, g if has_several else None, nodes, edges, formula)
    if len(groups) > len(shown):
        formula.append(f"and {len(groups) - len(shown)} more families of columns")
    components = str(getattr(model, "n_components_", "∞")) if is_auto else str(model.n_components)
    return Graph(tuple(nodes), tuple(edges), _n_rows(model), components, tuple(formula))


def _add_family(
    family: Any, group: int | None, nodes: list[Node], edges: list[tuple[str, str]], formula: list[str]
) -> None:
    symbols, conjugate = PARAMETERS.get(family.name, (("θ",), None))
    subscript, x = ("", 0) if group is None else ("₁₂₃₄"[group], group)
    names = [f"{symbol}{x}" for symbol in symbols]
    nodes += [Node(name, symbol + subscript, "parameter", ("K",)) for name, symbol in zip(names, symbols, strict=True)]
    edges += [(name, f"x{x}") for name in names]
    inner = ", ".join(f"{symbol}{subscript}ₖ" if group is None else f"{symbol}{subscript}" for symbol in symbols)
    formula.append(f"x{subscript} | z = k ~ {type(family).__name__}({inner})")
    if getattr(family, "prior", None) is not None and conjugate:
        nodes.append(Node(f"prior{x}", "η₀" + subscript, "constant"))
        edges += [(f"prior{x}", name) for name in names]
        formula.append(f"{', '.join(symbol + subscript for symbol in symbols)} ~ {conjugate}(η₀{subscript})")
