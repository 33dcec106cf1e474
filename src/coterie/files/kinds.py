"""All that a model file can be made of. What is not named here is neither written nor read."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from coterie.core.errors import ModelFileError

MODELS = (
    "AgglomerativeClustering", "BalancedKMeans", "BayesianGaussianMixture", "BisectingKMeans", "DivisiveClustering",
    "FuzzyCMeans", "GaussianMixture", "KMeans", "KMedians", "KMedoids", "KernelKMeans", "MiniBatchKMeans", "Mixture",
    "SphericalKMeans", "TimeSeriesKMeans",
)  # fmt: skip
PREPROCESSING = {
    "SimpleImputer": "sklearn.impute",
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
}
PIPELINE = "Pipeline"
INNER_MODELS = {"Bisections": "coterie.hierarchy.bisecting"}  # parts of other models

_RECORDS = {  # named tuples and dataclasses: all their fields are kept, and no others
    "core.online": "State",
    "distances.cosine": "Correlation Cosine",
    "distances.dtw": "DTW",
    "distances.euclidean": "Euclidean SquaredEuclidean",
    "distances.gower": "Gower",
    "distances.mahalanobis": "Mahalanobis",
    "distances.matching": "Hamming Jaccard",
    "distances.minkowski": "Chebyshev Manhattan Minkowski",
    "distances.series": "Series",
    "distances.windows": "Everywhere Itakura Mask SakoeChiba",
    "families.bernoulli": "Probabilities",
    "families.categorical": "Chances",
    "families.exponential": "Rates",
    "families.gamma": "Shapes",
    "families.gaussian": "Normals",
    "families.groups": "Groups",
    "families.linear": "Sums",
    "families.multinomial": "Shares",
    "families.normal_posterior": "NormalPosterior",
    "families.normal_prior": "Penalty Prior",
    "families.poisson": "Rates",
    "families.prior": "BetaPrior DirichletPrior GammaPrior",
    "families.structures": "Structure",
    "families.table": "Table",
    "families.tails": "Tails TailSums",
    "families.von_mises_fisher": "Directions",
    "hierarchy.assign": "Centers Fitted Members",
    "hierarchy.diana": "Way",
    "kmeans.bisecting": "Tree",
    "kmeans.gram": "Cosine Linear Polynomial Precomputed Rbf Sigmoid",
    "kmeans.kernel_lloyd": "Means",
    "kmeans.lloyd": "KMeansStats",
    "kmeans.nystrom": "Features",
    "medoids.objects": "Columns Rows",
    "mixture.beliefs": "Dirichlet NormalWishart Sticks",
    "mixture.dirichlet": "DirichletProcess Process",
    "mixture.em": "Event",
    "mixture.family_em": "Mix MixtureEM MixtureStats",
    "mixture.gaussian": "Components GaussianEM GaussianStats",
    "mixture.history": "History",
    "mixture.moves": "Move",
    "mixture.variational": "BoundHistory Posterior VariationalGaussians",
}
RECORDS = frozenset(f"{home}.{name}" for home, names in _RECORDS.items() for name in names.split())
STATES = RECORDS | {  # of fits that are not done yet, in checkpoints alone
    "core.checkpoint.Batches", "core.checkpoint.Reached", "core.checkpoint.Runs",
    "kmeans.search_state.Searched", "kmeans.transport.Division",
}  # fmt: skip

OBJECTS = {  # things that are their attributes: tag, and the attributes they can have
    "families.bernoulli.Bernoulli": "prior holes",
    "families.categorical.Categorical": "n_categories prior holes _levels",
    "families.exponential.Exponential": "prior holes",
    "families.gamma.Gamma": "prior holes",
    "families.gaussian.Gaussian": "structure reg_covar prior holes _origin _unit _rows",
    "families.multinomial.Multinomial": "prior holes _large",
    "families.poisson.Poisson": "prior holes _large",
    "families.product.Product": "groups table holes _groups",
    "families.student_t.StudentT": "dof structure reg_covar prior holes _origin _unit _rows",
    "families.von_mises_fisher.VonMisesFisher": "prior holes",
    "mixture.dirichlet.Believed": "family holes",
    "mixture.dirichlet.Blurred": "structure reg_covar prior holes _origin _unit _rows",
}

PRIVATE = frozenset({
    "_batches", "_channels", "_clusters", "_columns", "_components", "_distance", "_exponents", "_features",
    "_fill_dtype", "_fit_dtype", "_fitted_model", "_found", "_kernel", "_learned", "_medoids", "_n_features_out",
    "_random", "_roots", "_scaled_centers", "_sklearn_output_config", "_state", "_way", "_width",
})  # fmt: skip
_PUBLIC = re.compile(r"[a-z][a-z0-9_]*_")

CHANCE = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")  # bit generators of NumPy
LEGACY_CHANCE = "MT19937"  # that of RandomState
SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")
DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool")


def tag_of(kind: type) -> str:
    """How a file calls a class of ours: where it is, without the name of the package."""
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("coterie.")


def record_or_object(tag: str) -> type:
    """The class of that tag, which is known to be in `RECORDS` or `OBJECTS`."""
    home, _, name = tag.rpartition(".")
    found: type = getattr(import_module(f"coterie.{home}"), name)
    return found


def model_name(model: Any) -> str | None:
    """The name that a file gives the class of a model; None if files cannot hold it."""
    kind = type(model)
    known = (*MODELS, *PREPROCESSING, *INNER_MODELS, PIPELINE)
    return kind.__name__ if kind.__name__ in known and model_class(kind.__name__) is kind else None


def model_class(name: str) -> type:
    """The class of that name, which is known to be one of those above."""
    homes = {**PREPROCESSING, **INNER_MODELS, PIPELINE: "sklearn.pipeline"}
    found: type = getattr(import_module(homes.get(name, "coterie")), name)
    return found


def can_be_state(name: str, kind: type) -> bool:
    """Whether an attribute of that name can be what a fit has left; what is written in the class cannot."""
    return (name in PRIVATE or _PUBLIC.fullmatch(name) is not None) and not hasattr(kind, name)


def check_steps(steps: list[tuple[str, Any]]) -> None:
    """Refuse a Pipeline that is more than scalers before a model of coterie."""
    before = [type(step).__name__ for _, step in steps[:-1] if not (step is None or step == "passthrough")]
    last = type(steps[-1][1]).__name__ if steps else "nothing"
    if last not in MODELS or not set(before) <= set(PREPROCESSING):
        raise ModelFileError(
            f"a Pipeline must end in an estimator of coterie, after {', '.join(PREPROCESSING)}; "
            f"its steps are {', '.join([*before, last])}"
        )
