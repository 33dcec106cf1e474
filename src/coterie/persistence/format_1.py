"""Convert files of format 1, whose tags were the modules of the classes, to the current format."""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular

from coterie.errors import ModelFileError

TAGS = {
    "core.online.State": "online.State",
    "distances.cosine.Correlation": "distance.Correlation",
    "distances.cosine.Cosine": "distance.Cosine",
    "distances.dtw.DTW": "distance.DTW",
    "distances.euclidean.Euclidean": "distance.Euclidean",
    "distances.euclidean.SquaredEuclidean": "distance.SquaredEuclidean",
    "distances.gower.Gower": "distance.Gower",
    "distances.mahalanobis.Mahalanobis": "distance.Mahalanobis",
    "distances.matching.Hamming": "distance.Hamming",
    "distances.matching.Jaccard": "distance.Jaccard",
    "distances.minkowski.Chebyshev": "distance.Chebyshev",
    "distances.minkowski.Manhattan": "distance.Manhattan",
    "distances.minkowski.Minkowski": "distance.Minkowski",
    "distances.series.Series": "series.Series",
    "distances.windows.Everywhere": "window.Everywhere",
    "distances.windows.Itakura": "window.Itakura",
    "distances.windows.Mask": "window.Mask",
    "distances.windows.SakoeChiba": "window.SakoeChiba",
    "families.bernoulli.Bernoulli": "family.Bernoulli",
    "families.bernoulli.Probabilities": "parameters.Bernoulli",
    "families.categorical.Categorical": "family.Categorical",
    "families.categorical.Chances": "parameters.Categorical",
    "families.exponential.Exponential": "family.Exponential",
    "families.exponential.Rates": "parameters.Exponential",
    "families.gamma.Gamma": "family.Gamma",
    "families.gamma.Shapes": "parameters.Gamma",
    "families.gaussian.Gaussian": "family.Gaussian",
    "families.gaussian.Normals": "parameters.Gaussian",
    "families.groups.Groups": "statistics.Groups",
    "families.linear.Sums": "statistics.ExponentialFamily",
    "families.multinomial.Multinomial": "family.Multinomial",
    "families.multinomial.Shares": "parameters.Multinomial",
    "families.normal_posterior.NormalPosterior": "posterior.Normal",
    "families.normal_prior.Penalty": "prior.NormalPenalty",
    "families.normal_prior.Prior": "prior.Normal",
    "families.poisson.Poisson": "family.Poisson",
    "families.poisson.Rates": "parameters.Poisson",
    "families.prior.BetaPrior": "prior.Beta",
    "families.prior.DirichletPrior": "prior.Dirichlet",
    "families.prior.GammaPrior": "prior.Gamma",
    "families.product.Product": "family.Product",
    "families.structures.Structure": "covariance.Structure",
    "families.student_t.StudentT": "family.StudentT",
    "families.table.Table": "frame.Columns",
    "families.tails.TailSums": "statistics.StudentT",
    "families.tails.Tails": "parameters.StudentT",
    "families.von_mises_fisher.Directions": "parameters.VonMisesFisher",
    "families.von_mises_fisher.VonMisesFisher": "family.VonMisesFisher",
    "hierarchy.assign.Centers": "hierarchy.Centers",
    "hierarchy.assign.Fitted": "hierarchy.Objects",
    "hierarchy.assign.Members": "hierarchy.Members",
    "hierarchy.diana.Way": "hierarchy.Splits",
    "kmeans.bisecting.Tree": "bisecting.Tree",
    "kmeans.gram.Cosine": "kernel.Cosine",
    "kmeans.gram.Linear": "kernel.Linear",
    "kmeans.gram.Polynomial": "kernel.Polynomial",
    "kmeans.gram.Precomputed": "kernel.Precomputed",
    "kmeans.gram.Rbf": "kernel.Rbf",
    "kmeans.gram.Sigmoid": "kernel.Sigmoid",
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
    "mixture.em.Event": "mixture.Event",
    "mixture.family_em.Mix": "mixture.Parameters",
    "mixture.family_em.MixtureEM": "mixture.Model",
    "mixture.family_em.MixtureStats": "statistics.Mixture",
    "mixture.gaussian.Components": "gaussian_mixture.Components",
    "mixture.gaussian.GaussianEM": "gaussian_mixture.Model",
    "mixture.gaussian.GaussianStats": "statistics.GaussianMixture",
    "mixture.history.History": "mixture.History",
    "mixture.moves.Move": "mixture.Move",
    "mixture.variational.BoundHistory": "bayesian.History",
    "mixture.variational.Posterior": "bayesian.Components",
    "mixture.variational.VariationalGaussians": "bayesian.Model",
}
_MISSING = {"holes": "has_missing"}
RENAMED: dict[str, dict[str, str]] = {  # fields and attributes by current tag: old and new names
    "DivisiveClustering": {"_way": "_splits"},
    "FuzzyCMeans": {"m": "fuzzifier"},
    "KernelKMeans": {"_found": "_centers"},
    "bayesian.Model": {"belief": "component_prior"},
    "dirichlet_process.Family": _MISSING,
    "dirichlet_process.Gaussian": _MISSING,
    "family.Bernoulli": _MISSING,
    "family.Categorical": _MISSING,
    "family.Exponential": _MISSING,
    "family.Gamma": _MISSING,
    "family.Gaussian": _MISSING,
    "family.Multinomial": _MISSING,
    "family.Poisson": _MISSING,
    "family.Product": _MISSING,
    "family.StudentT": _MISSING,
    "family.VonMisesFisher": _MISSING,
    "medoids.Columns": {"which": "indices"},
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


def upgraded(node: Any, tensors: dict[str, np.ndarray]) -> Any:
    """The content of a file in the current format; arrays that are now stored differently are replaced in `tensors`.

    Malformed content is not changed: the decoder rejects it.
    """
    if isinstance(node, list):
        return [upgraded(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: upgraded(value, tensors) for key, value in node.items()}
    for kind, part in (("record", "fields"), ("object", "fields"), ("model", "options"), ("model", "state")):
        tag, values = node.get(kind), node.get(part)
        if isinstance(tag, str) and isinstance(values, dict):
            if kind != "model":
                tag = node[kind] = TAGS.get(tag, f"{tag} of format 1")
            names = RENAMED.get(tag, {})
            values = ADDED.get(tag, {}) | {names.get(name, name): value for name, value in values.items()}
            node[part] = _with_whitening(values, tensors) if "factor_" in values else values
    return node


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
