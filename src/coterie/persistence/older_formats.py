"""Convert files of older formats: tags of format 1 were modules of classes; fields were renamed after format 2."""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular

from coterie.errors import ModelFileError

# Old and new prefix of tags: modules and classes whose class name is the last part of the new tag.
UNCHANGED_NAMES = {
    ("distances", "distance"): (
        "cosine.Correlation cosine.Cosine dtw.DTW euclidean.Euclidean euclidean.SquaredEuclidean gower.Gower "
        "mahalanobis.Mahalanobis matching.Hamming matching.Jaccard minkowski.Chebyshev minkowski.Manhattan "
        "minkowski.Minkowski"
    ),
    ("distances", "window"): "windows.Everywhere windows.Itakura windows.Mask windows.SakoeChiba",
    ("families", "family"): (
        "bernoulli.Bernoulli categorical.Categorical exponential.Exponential gamma.Gamma gaussian.Gaussian "
        "multinomial.Multinomial poisson.Poisson product.Product student_t.StudentT "
        "von_mises_fisher.VonMisesFisher"
    ),
    ("kmeans", "kernel"): "gram.Cosine gram.Linear gram.Polynomial gram.Precomputed gram.Rbf gram.Sigmoid",
    ("mixture", "mixture"): "em.Event history.History moves.Move",
}
TAGS = {
    "core.online.State": "online.State",
    "distances.series.Series": "series.Series",
    "families.bernoulli.Probabilities": "parameters.Bernoulli",
    "families.categorical.Chances": "parameters.Categorical",
    "families.exponential.Rates": "parameters.Exponential",
    "families.gamma.Shapes": "parameters.Gamma",
    "families.gaussian.Normals": "parameters.Gaussian",
    "families.groups.Groups": "statistics.Groups",
    "families.linear.Sums": "statistics.ExponentialFamily",
    "families.multinomial.Shares": "parameters.Multinomial",
    "families.normal_posterior.NormalPosterior": "posterior.Normal",
    "families.normal_prior.Penalty": "prior.NormalPenalty",
    "families.normal_prior.Prior": "prior.Normal",
    "families.poisson.Rates": "parameters.Poisson",
    "families.prior.BetaPrior": "prior.Beta",
    "families.prior.DirichletPrior": "prior.Dirichlet",
    "families.prior.GammaPrior": "prior.Gamma",
    "families.structures.Structure": "covariance.Structure",
    "families.table.Table": "frame.Columns",
    "families.tails.TailSums": "statistics.StudentT",
    "families.tails.Tails": "parameters.StudentT",
    "families.von_mises_fisher.Directions": "parameters.VonMisesFisher",
    "hierarchy.assign.Centers": "hierarchy.Centers",
    "hierarchy.assign.Fitted": "hierarchy.Objects",
    "hierarchy.assign.Members": "hierarchy.Members",
    "hierarchy.diana.Way": "hierarchy.Splits",
    "kmeans.bisecting.Tree": "bisecting.Tree",
    "kmeans.kernel_lloyd.Means": "kernel_kmeans.Means",
    "kmeans.lloyd.KMeansStats": "statistics.KMeans",
    "kmeans.nystrom.Features": "kernel_kmeans.Features",
    "medoids.objects.Columns": "medoids.Columns",
    "medoids.objects.Rows": "medoids.Rows",
    "mixture.beliefs.Dirichlet": "bayesian.Dirichlet",
    "mixture.beliefs.NormalWishart": "bayesian.NormalWishart",
    "mixture.beliefs.Sticks": "bayesian.StickBreaking",
    "mixture.dirichlet.Believed": "dirichlet_process.Family",
    "mixture.dirichlet.Blurred": "dirichlet_process.Gaussian",
    "mixture.dirichlet.DirichletProcess": "dirichlet_process.Model",
    "mixture.dirichlet.Process": "dirichlet_process.Parameters",
    "mixture.family_em.Mix": "mixture.Parameters",
    "mixture.family_em.MixtureEM": "mixture.Model",
    "mixture.family_em.MixtureStats": "statistics.Mixture",
    "mixture.gaussian.Components": "gaussian_mixture.Components",
    "mixture.gaussian.GaussianEM": "gaussian_mixture.Model",
    "mixture.gaussian.GaussianStats": "statistics.GaussianMixture",
    "mixture.variational.BoundHistory": "bayesian.History",
    "mixture.variational.Posterior": "bayesian.Components",
    "mixture.variational.VariationalGaussians": "bayesian.Model",
} | {
    f"{old}.{name}": f"{new}.{name.rpartition('.')[2]}"
    for (old, new), names in UNCHANGED_NAMES.items()
    for name in names.split()
}
_FAMILIES = ("Bernoulli", "Categorical", "Exponential", "Gamma", "Gaussian", "Multinomial", "Poisson", "Product")
_HAVE_MISSING = (f"family.{name}" for name in (*_FAMILIES, "StudentT", "VonMisesFisher"))
RENAMED: dict[str, dict[str, str]] = {  # fields and attributes by current tag: old and new names
    "DivisiveClustering": {"_way": "_splits"},
    "FuzzyCMeans": {"m": "fuzzifier"},
    "KernelKMeans": {"_found": "_centers"},
    "bayesian.Model": {"belief": "component_prior"},
    "dirichlet_process.Family": {"holes": "has_missing"},
    "dirichlet_process.Gaussian": {"holes": "has_missing"},
    "medoids.Columns": {"which": "indices"},
    **{tag: {"holes": "has_missing"} for tag in _HAVE_MISSING},
}
_EXPONENT = {"exponent_": 0}
ADDED: dict[str, dict[str, Any]] = {  # fields that older versions did not write, with the equivalent values
    "distance.Correlation": _EXPONENT,
    "distance.Cosine": _EXPONENT,
    "distance.Euclidean": _EXPONENT,
    "distance.SquaredEuclidean": _EXPONENT,
    "distance.DTW": _EXPONENT,
    "distance.Jaccard": {"w": None},
    "distance.Mahalanobis": {**_EXPONENT, "pseudo_inverse": False, "VI": None},
}


def upgraded(node: Any, tensors: dict[str, np.ndarray], version: int) -> Any:
    """The content of a file in the current format; arrays that are now stored differently are replaced in `tensors`.

    Malformed content is not changed: the decoder rejects it.
    """
    if isinstance(node, list):
        return [upgraded(item, tensors, version) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: upgraded(value, tensors, version) for key, value in node.items()}
    for kind, part in (("record", "fields"), ("object", "fields"), ("model", "options"), ("model", "state")):
        tag, values = node.get(kind), node.get(part)
        if isinstance(tag, str) and isinstance(values, dict):
            if kind != "model" and version == 1:
                tag = node[kind] = TAGS.get(tag, f"{tag} of format 1")
            names = RENAMED.get(tag, {})
            values = ADDED.get(tag, {}) | {names.get(name, name): value for name, value in values.items()}
            if tag == "distance.StandardizedEuclidean" and "weights_" in values:
                values = _with_deviations(values, tensors)
            node[part] = _with_whitening(values, tensors) if "factor_" in values else values
    return node


def _with_deviations(values: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """Fields of a standardised Euclidean distance that was stored with the inverse variances of the columns."""
    node = values.pop("weights_")
    name = node.get("array") if isinstance(node, dict) else None
    weights: Any = tensors.get(name) if isinstance(name, str) else None
    if isinstance(weights, np.ndarray) and weights.dtype.kind == "f" and (weights >= 0).all():
        varies = weights > 0
        tensors[str(name)] = np.where(varies, 1 / np.sqrt(np.where(varies, weights, 1.0)), 0.0)
    return {"deviations_": node} | values


def _with_whitening(values: dict[str, Any], tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    """Fields of a Mahalanobis distance that was stored as the Cholesky factor of the covariance.

    With the covariance L L', rows multiplied by the inverse of L' have unit covariance.
    """
    if "whitening_" in values or "origin_" in values:
        raise ModelFileError("a Mahalanobis distance has fields of two versions: factor_, and origin_ or whitening_")
    node = values.pop("factor_")
    if node is None:
        return values | {"origin_": None, "whitening_": None}
    name = node.get("array") if isinstance(node, dict) else None
    factor: Any = tensors.pop(name, None) if isinstance(name, str) else None
    try:
        whitening = solve_triangular(factor, np.eye(len(factor)), lower=True).T
    except (LinAlgError, TypeError, ValueError):
        raise ModelFileError("the Cholesky factor of a Mahalanobis distance is malformed") from None
    tensors[f"{name} origin"] = np.zeros(len(factor))
    tensors[f"{name} whitening"] = np.ascontiguousarray(whitening)
    return values | {"origin_": {"array": f"{name} origin"}, "whitening_": {"array": f"{name} whitening"}}
