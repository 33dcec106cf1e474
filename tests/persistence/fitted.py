"""Fitted models of every estimator and its main options, with rows to predict."""

from functools import cache

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import coterie
from coterie.data.tables.readings import Reading
from coterie.distances.windows import Itakura
from coterie.families import DirichletPrior, GammaPrior, Gaussian, Poisson, Product, StudentT
from coterie.families.normal_prior import Prior
from coterie.preparation.column_reader import ColumnReader
from short_searches import short_searches

rng = np.random.default_rng(0)
X = np.vstack([rng.normal(size=(30, 3)) + shift for shift in (1, 7, 13)])
SINGLE = X.astype(np.float32)
HOLES = np.where(np.arange(270).reshape(90, 3) % 7 == 1, np.nan, X)
COUNTS = np.vstack([rng.poisson(rate, (40, 4)) for rate in (2, 9)]).astype(float)
SPARSE = sparse.csr_array(COUNTS)
ANSWERS = (COUNTS > 4).astype(float)
POSITIVE = COUNTS + 0.5
SERIES = [row[: 2 + i % 2] for i, row in enumerate(X)]
CHANNELS = rng.normal(size=(30, 6, 2))
FRAME = pd.DataFrame({"a": COUNTS[:, 0], "b": COUNTS[:, 1], "c": COUNTS[:, 2]})
WRITTEN = FRAME.assign(a=[f"${value}" for value in COUNTS[:, 0]])
AMOUNTS = {"a": Reading(column="a", kind="number", unit="$").as_dict()}
MIXED = pd.DataFrame(
    {"visits": rng.integers(0, 9, 80), "kind": rng.choice(["x", "y", "z"], 80), "size": rng.normal(size=80)}
)
GRAPH = sparse.csr_matrix(np.eye(90, k=1) + np.eye(90, k=-1))
BETWEEN = np.abs(X[:, :1] - X[:, 0])
STRUCTURES = (
    "EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV",
)  # fmt: skip
METRICS = (
    "euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "correlation", "mahalanobis", "gower",
)  # fmt: skip

K = {"n_clusters": 3, "random_state": 0}
C = {"n_components": 2, "random_state": 0}

UNFITTED = {  # name: model, rows
    "KMeans": (coterie.KMeans(**K), X),
    "KMeans float32": (coterie.KMeans(**K), SINGLE),
    "KMeans sparse": (coterie.KMeans(**K), SPARSE),
    "KMeans frame": (coterie.KMeans(**K), FRAME),
    "KMeans given start": (coterie.KMeans(3, init=X[[0, 40, 80]]), X),
    "KMeans weights of columns": (coterie.KMeans(**K, metric_weights=[1, 2, 0]), X),
    "KMeans frozen": (coterie.KMeans(**K, frozen_centers=X[:1]), X),
    "KMeans holes": (coterie.KMeans(**K, missing="ignore"), HOLES),
    "KMeans search": (coterie.KMeans(**K, search="fast"), X),
    "KMeans generator": (coterie.KMeans(3, random_state=np.random.default_rng(1)), X),
    "KMeans random state": (coterie.KMeans(3, random_state=np.random.RandomState(1)), X),
    "MiniBatchKMeans": (coterie.MiniBatchKMeans(**K), X),
    "MiniBatchKMeans float32": (coterie.MiniBatchKMeans(**K), SINGLE),
    "BisectingKMeans": (coterie.BisectingKMeans(**K), X),
    "BalancedKMeans": (coterie.BalancedKMeans(**K, size_min=20, must_link=[(0, 1)]), X),
    "SphericalKMeans": (coterie.SphericalKMeans(**K), X),
    "KMedians": (coterie.KMedians(**K), X),
    "KMedians l2": (coterie.KMedians(**K, metric="l2"), X),
    "FuzzyCMeans": (coterie.FuzzyCMeans(**K, fuzzifier=1.7), X),
    "KernelKMeans": (coterie.KernelKMeans(**K), X),
    "KernelKMeans sparse": (coterie.KernelKMeans(**K, kernel="cosine"), SPARSE),
    "KernelKMeans polynomial": (coterie.KernelKMeans(**K, kernel="poly", degree=2), X),
    "KernelKMeans linear": (coterie.KernelKMeans(**K, kernel="linear"), X),
    "KernelKMeans sigmoid": (coterie.KernelKMeans(**K, kernel="sigmoid"), X),
    "KernelKMeans precomputed": (coterie.KernelKMeans(**K, kernel="precomputed"), X @ X.T),
    "KernelKMeans nystrom": (coterie.KernelKMeans(**K, approximation="nystrom", n_landmarks=20), X),
    **{f"KMedoids {metric}": (coterie.KMedoids(**K, metric=metric), X) for metric in METRICS},
    "KMedoids minkowski": (coterie.KMedoids(**K, metric="minkowski", metric_params={"p": 3}), X),
    "KMedoids hamming": (coterie.KMedoids(2, metric="hamming", random_state=0), ANSWERS),
    "KMedoids jaccard": (coterie.KMedoids(2, metric="jaccard", random_state=0), np.hstack([ANSWERS, ANSWERS * 0 + 1])),
    "KMedoids mixed": (coterie.KMedoids(2, metric="gower", random_state=0), MIXED),
    "KMedoids series": (coterie.KMedoids(**K, metric="dtw", metric_params={"window": 1}), SERIES),
    "KMedoids precomputed": (coterie.KMedoids(**K, metric="precomputed"), BETWEEN),
    "TimeSeriesKMeans": (coterie.TimeSeriesKMeans(**K), X),
    "TimeSeriesKMeans lengths": (coterie.TimeSeriesKMeans(**K, window=Itakura(3.0)), SERIES),
    "TimeSeriesKMeans channels": (coterie.TimeSeriesKMeans(**K, metric="softdtw"), CHANNELS),
    **{f"GaussianMixture {name}": (coterie.GaussianMixture(**C, covariance_type=name), X) for name in STRUCTURES},
    "GaussianMixture float32": (coterie.GaussianMixture(**C), SINGLE),
    "GaussianMixture holes": (coterie.GaussianMixture(**C, missing="ignore"), HOLES),
    "GaussianMixture prior": (coterie.GaussianMixture(**C, prior=Prior(shrinkage=2.0)), X),
    "GaussianMixture fixed": (coterie.GaussianMixture(**C, means_init=X[[0, 40]], fixed=("means",)), X),
    **{
        f"BayesianGaussianMixture {form}": (coterie.BayesianGaussianMixture(**C, covariance_type=form), X)
        for form in ("full", "tied", "diag", "spherical")
    },
    "BayesianGaussianMixture finite": (
        coterie.BayesianGaussianMixture(**C, weight_concentration_prior_type="dirichlet_distribution"), X,
    ),
    "Mixture poisson": (coterie.Mixture(family="poisson", **C), COUNTS),
    "Mixture poisson prior": (coterie.Mixture(family=Poisson(GammaPrior(2.0, [1.0, 2.0, 1.0, 1.0])), **C), COUNTS),
    "Mixture bernoulli": (coterie.Mixture(family="bernoulli", **C), ANSWERS),
    "Mixture categorical": (coterie.Mixture(family="categorical", **C), ANSWERS),
    "Mixture multinomial": (coterie.Mixture(family="multinomial", **C, prior=DirichletPrior(1.5)), COUNTS),
    "Mixture multinomial sparse": (coterie.Mixture(family="multinomial", **C), SPARSE),
    "Mixture exponential": (coterie.Mixture(family="exponential", **C), POSITIVE),
    "Mixture gamma": (coterie.Mixture(family="gamma", **C), POSITIVE),
    "Mixture gaussian": (coterie.Mixture(family=Gaussian("VEV"), **C), X),
    "Mixture student_t": (coterie.Mixture(family="student_t", **C), X),
    "Mixture von_mises_fisher": (coterie.Mixture(family="von_mises_fisher", **C), X),
    "Mixture product": (
        coterie.Mixture(family=Product([("poisson", range(2)), ("gamma", [2, 3])]), **C),
        POSITIVE + 0.5,
    ),
    "Mixture auto": (coterie.Mixture("auto", "poisson", random_state=0), COUNTS),
    "Mixture auto gaussian": (coterie.Mixture("auto", "gaussian", random_state=0), X),
    "Mixture auto sparse": (coterie.Mixture("auto", "multinomial", random_state=0), SPARSE),
    "Mixture auto holes": (coterie.Mixture("auto", Gaussian("diag"), missing="ignore", random_state=0), HOLES),
    "Mixture tails": (coterie.Mixture(family=StudentT(5.0, structure="diag"), **C), X),
    "Mixture holes": (coterie.Mixture(family="gaussian", **C, missing="ignore"), HOLES),
    "AgglomerativeClustering series": (coterie.AgglomerativeClustering(3, linkage="average", metric="dtw"), SERIES),
    "AgglomerativeClustering mixed": (coterie.AgglomerativeClustering(3, linkage="single", metric="gower"), MIXED),
    "DivisiveClustering series": (coterie.DivisiveClustering(3, metric="dtw"), SERIES),
    "AgglomerativeClustering": (coterie.AgglomerativeClustering(3), X),
    "DBSCAN": (coterie.DBSCAN("auto"), X),
    "DBSCAN precomputed": (coterie.DBSCAN("auto", metric="precomputed"), BETWEEN),
    "HDBSCAN": (coterie.HDBSCAN(), X),
    "HDBSCAN series": (coterie.HDBSCAN(2, metric="dtw"), SERIES),
    "HDBSCAN precomputed": (coterie.HDBSCAN(metric="precomputed"), BETWEEN),
    **{
        f"AgglomerativeClustering {linkage}": (coterie.AgglomerativeClustering(3, linkage=linkage), X)
        for linkage in ("single", "average", "weighted", "centroid")
    },
    "AgglomerativeClustering cosine": (coterie.AgglomerativeClustering(3, metric="cosine", linkage="complete"), X),
    "AgglomerativeClustering graph": (coterie.AgglomerativeClustering(3, connectivity=GRAPH), X),
    "AgglomerativeClustering precomputed": (
        coterie.AgglomerativeClustering(3, metric="precomputed", linkage="average"), BETWEEN,
    ),
    "DivisiveClustering": (coterie.DivisiveClustering(3), X),
    "DivisiveClustering precomputed": (coterie.DivisiveClustering(3, metric="precomputed"), BETWEEN),
    "DivisiveClustering bisecting": (coterie.DivisiveClustering(3, method="bisecting", random_state=0), X),
    "SimpleImputer": (make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), coterie.KMeans(**K)), HOLES),
    "StandardScaler": (make_pipeline(StandardScaler(), coterie.KMeans(**K)), X),
    "MinMaxScaler": (make_pipeline(MinMaxScaler(), coterie.GaussianMixture(**C)), FRAME),
    "RobustScaler": (make_pipeline(RobustScaler(), StandardScaler(), coterie.BisectingKMeans(**K)), SINGLE),
    "ColumnReader": (make_pipeline(ColumnReader(list("abc"), AMOUNTS, {"c": "log1p"}), coterie.KMeans(**K)), WRITTEN),
}  # fmt: skip
FITTED = {"Mixture frame": MIXED, "Mixture frame auto": MIXED}
NAMES = (*UNFITTED, *FITTED)


@cache
def fitted(name):
    """The fitted model of that name and its rows; shared by all tests, so do not change it."""
    if name in FITTED:
        number = "auto" if name.endswith("auto") else 2
        return coterie.Mixture.from_frame(MIXED, number, random_state=0), MIXED
    model, rows = UNFITTED[name]
    with short_searches():
        return model.fit(rows), rows
