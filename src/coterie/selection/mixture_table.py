"""Information criteria of Gaussian mixtures over the number of components and the covariance structure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, in_order, one_of, whole_number
from coterie.core.arrays import Array
from coterie.core.progress import Callback, check_callback, reported
from coterie.core.progress_bar import with_verbose
from coterie.core.protocols import Chunk
from coterie.core.repr_html import ReprHTMLMixin
from coterie.core.scale import UNIT, Scale
from coterie.data import as_source
from coterie.errors import ParameterError, ScaleError
from coterie.families.structures import STRUCTURES, as_structure
from coterie.mixture.degeneracy import degeneracy_of_fit
from coterie.mixture.gaussian_em import Components, GaussianEM
from coterie.mixture.gaussian_mixture import GaussianMixture
from coterie.mixture.warm_start import em_of, fit_from
from coterie.selection.mixture_starts import Starts
from coterie.selection.sweep import Sweep, as_ks
from coterie.selection.text_table import aligned

CRITERIA = ("bic", "aic", "icl")
FAILURES = {1: "a component has no variance in some direction", 2: "a component has too few rows"}
COARSE_TOL = 1.0  # tolerance of coarse fits: estimated remaining gain of log-likelihood, for a thousand rows
COARSE_MAX_ITER = 50  # maximum number of iterations of coarse fits
# Minimum value of `spread` for each form of covariance.
REQUIRED_SPREAD = {"spherical": 1, "diag": 2, "tied": 3, "full": 3}
FLAT = 1e-12  # a direction with less than this share of the column variance has no variance
ROUNDING = 1e-13  # a column that varies by less than this share of its size is constant
N_STORED_MODELS = 3  # number of best models by each criterion that are stored


class Choice(NamedTuple):
    """One cell of the table: a number of components and a covariance structure."""

    k: int
    structure: str
    value: float  # of the criterion; lower is better
    behind: float  # difference from the best value

    def __str__(self) -> str:
        return f"{self.structure},{self.k}"


@dataclass(frozen=True, repr=False)
class MixtureTable(ReprHTMLMixin):
    """Result of `mixture_table`: one row per number of components, one column per covariance structure."""

    ks: Array  # (m,) numbers of components
    structures: tuple[str, ...]
    bic: Array  # (m, structures) lower is better; infinite if no valid fit was found
    aic: Array  # (m, structures)
    icl: Array  # (m, structures)
    log_likelihood: Array  # (m, structures) minus infinity if no valid fit was found
    n_parameters: Array  # (m, structures)
    failures: dict[tuple[int, str], str]  # reason for each cell without a value
    models: dict[tuple[int, str], GaussianMixture]  # fitted models: the best three by each criterion

    def best(self, count: int = 3, criterion: str = "bic") -> list[Choice]:
        """Return the `count` best cells, best first; of equal ones, those with fewer components and parameters."""
        whole_number("count", count, 1)
        values = getattr(self, one_of("criterion", criterion, CRITERIA))
        return _lowest(self.ks, self.structures, values, self.n_parameters, count)

    def table(self, criterion: str = "bic", mclust: bool = False) -> list[dict[str, Any]]:
        """Return one row per number of components; None if no valid fit was found.

        With ``mclust=True`` the signs are those of mclust: higher is better (also for AIC).
        """
        values = getattr(self, one_of("criterion", criterion, CRITERIA))
        sign = -1.0 if mclust else 1.0
        cells = [[sign * v if np.isfinite(v) else None for v in row] for row in values.tolist()]
        rows = zip(self.ks.tolist(), cells, strict=True)
        return [{"k": k, **dict(zip(self.structures, row, strict=True))} for k, row in rows]

    def __str__(self) -> str:
        lines = [aligned(self.table())]
        for criterion in CRITERIA:
            first = ", ".join(f"{choice} ({choice.value:.6g})" for choice in self.best(3, criterion))
            lines.append(f"{criterion.upper()}, lower is better: {first or 'no valid fit'}")
        return "\n".join(lines)


@in_order("mixture_table(X, ks, structures='all')")
@with_verbose
def mixture_table(
    X: Any,
    ks: Iterable[int] = range(1, 10),
    *,
    structures: str | Iterable[str] = "all",
    sample_weight: Any = None,
    prior: Any = None,
    reg_covar: float = 1e-6,
    starts: Any = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> MixtureTable:
    r"""Compute BIC, AIC and ICL of Gaussian mixtures over the number of components and the covariance structure.

    With :math:`\ell` the log-likelihood, p the number of free parameters and n the total weight of the rows,

    .. math:: \mathrm{BIC} = -2 \ell + p \log n, \qquad \mathrm{AIC} = -2 \ell + 2 p, \qquad
              \mathrm{ICL} = \mathrm{BIC} + 2 \sum_i w_i \log \frac{1}{\max_k r_{ik}}

    where :math:`r_{ik}` is the posterior of component k for row i. Lower is better in all three; mclust [1]_ prints
    BIC and ICL with the opposite sign. BIC chooses the mixture that describes the density best, with a penalty for
    parameters. Two of its components may form one non-Gaussian cluster. ICL [2]_ adds the entropy of the assignment of
    rows to components. So it prefers components that are well separated: clusters. AIC tends to choose too many
    components for large data.

    Do not use it for clusters that are not elliptical. Do not rely on the best cell if others are within a few units:
    a difference in BIC below 2 is weak evidence, a difference above 10 is strong evidence [3]_.

    Parameters
    ----------
    X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
        Rows.
    ks : iterable of int, default=range(1, 10)
        Numbers of components.
    structures : 'all' or iterable of str, default='all'
        Names of covariance structures: the fourteen names of mclust, or the names of scikit-learn. 'all' is all
        fourteen, or 'E' and 'V' for one column.
    sample_weight : array (n,) or None, default=None
        Row weights: a row of weight two is the same as that row twice.
    prior : prior or None, default=None
        Prior of the covariances, as in `GaussianMixture`.
    reg_covar : float, default=1e-6
        Regularisation of the covariances, as in `GaussianMixture`.
    starts : {'auto', 'thorough'} or Sweep, default='auto'
        Initialisation of EM: the `search` of `GaussianMixture`, or a `Sweep` of the same rows. Each cell then starts
        from the clusters of its K and runs at most 50 iterations. This gives an approximate table in a small part of
        the time.
    n_jobs : int or None, default=None
        Number of threads, one per cell; None uses all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator.
    callback : callable or None, default=None
        Called with a `Progress` after every cell. If it returns True, the computation stops and returns the cells so
        far.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    MixtureTable
        Has `bic`, `aic`, `icl`, `best()`, `table()` and `models`.

    Notes
    -----
    A cell has no value (None in `table`, infinite in the arrays) and a reason in `failures` if all of its fits are
    degenerate. This means that a component has fewer rows than its shape requires, or no variance in a direction in
    which the data vary. It also happens if the data have no variance in some direction. The likelihood is unbounded in
    these cases. A prior bounds it, and then every cell has a value.

    Structures that are the same for one component are fitted once. Each cell has a search for starts of its own, with
    the clusters of a model-based tree, which all cells share. Then it also starts from the results of the other
    structures of its K. So a structure is at least as likely as its special cases. The search for starts uses at most
    2000 rows, or more for many components. EM then runs on all rows.

    References
    ----------
    .. [1] L. Scrucca, M. Fop, T. B. Murphy & A. E. Raftery (2016), mclust 5, The R Journal 8, 289-317.
       https://doi.org/10.32614/RJ-2016-021
    .. [2] C. Biernacki, G. Celeux & G. Govaert (2000), Assessing a mixture model for clustering with the integrated
       completed likelihood, IEEE PAMI 22, 719-725. https://doi.org/10.1109/34.865189
    .. [3] R. E. Kass & A. E. Raftery (1995), Bayes factors, J. American Statistical Association 90, 773-795.
       https://doi.org/10.1080/01621459.1995.10476572

    Examples
    --------
    >>> from coterie.datasets import make_gaussians
    >>> from coterie.selection import mixture_table
    >>> X, _, _ = make_gaussians(500, 2, 3, random_state=3)
    >>> result = mixture_table(X, ks=range(1, 5), structures=["EII", "VVI", "VVV"], random_state=0)
    >>> str(result.best()[0])
    'VVV,3'
    """
    k_values, callback = as_ks(ks), check_callback(callback)
    source = as_source(X, sample_weight)
    names = _structure_names(structures, source.shape[1])
    if not isinstance(starts, Sweep):
        one_of("starts", starts, ("auto", "thorough"))
    grid = _Grid(getattr(source, "X", X), sample_weight, prior, reg_covar, as_rng(random_state), n_jobs)
    rows = (grid.coarse_rows if isinstance(starts, Sweep) else grid.rows)(k_values, names, starts)
    cells = [f"{name},{k}" for k in k_values for name in names]
    with machine.one_blas_thread, interrupts.outermost():
        results = list(reported(rows, cells, callback, [k for k in k_values for _ in names]))
    return _table(k_values, names, results)


class Cell(NamedTuple):
    """A fitted mixture and its criteria, or the reason why there is none."""

    k: int
    structure: str
    model: GaussianMixture | None
    log_likelihood: float = -np.inf
    n_parameters: int = 0
    bic: float = np.inf
    aic: float = np.inf
    icl: float = np.inf
    failure: str | None = None


class _Grid:
    """Computes the cells of the table, in ascending order of the number of components."""

    def __init__(self, X: Any, w: Any, prior: Any, reg_covar: float, rng: np.random.Generator, n_jobs: int | None):
        self.X, self.w, self.prior, self.reg_covar, self.n_jobs = X, w, prior, reg_covar, n_jobs
        self.original, self.scale = (X, w), UNIT
        mixture = self._mixture(1, "VVV")
        try:
            self.source, self.engine, self.summary = mixture._open(X, w, first=True)
        except ScaleError as error:
            mixture._check_rescalable(error)
            self.scale = Scale(error.rows, error.weights)
            self.X, self.w = mixture._divided(X, w, self.scale)
            self.source, self.engine, self.summary = mixture._open(self.X, self.w, first=True)
        self.seed = int(rng.integers(2**31))
        self.starts = Starts(self._em(1, "VVV"), self.source, rng, n_jobs)
        self.spread = spread(self.starts.chunk)

    def rows(self, ks: list[int], names: tuple[str, ...], search: str) -> Iterator[Cell]:
        for k in ks:
            yield from self._cells(k, names, search)

    def coarse_rows(self, ks: list[int], names: tuple[str, ...], clusters: Sweep) -> Iterator[Cell]:
        """Approximate cells: one start each, and a coarse tolerance."""
        labels = dict(zip(clusters.ks.tolist(), clusters.labels, strict=True))
        calls = [(k, name, labels[k]) for k in ks for name in names]
        return machine.in_threads(self._coarse_cell, calls, self.n_jobs)

    def _coarse_cell(self, k: int, name: str, labels: Array) -> Cell:
        if len(np.unique(labels)) < k:
            return Cell(k, name, None, failure="the sweep has fewer clusters for this K")
        model = self._mixture(k, name).set_params(
            init_params=labels, tol=COARSE_TOL, callback=lambda progress: progress.iteration >= COARSE_MAX_ITER
        )
        model.fit(self.X, sample_weight=self.w).set_params(callback=None)  # it cannot be pickled
        degeneracy = self._degeneracy(model)
        return Cell(k, name, None, failure=FAILURES[degeneracy]) if degeneracy else self._evaluated(k, name, model)

    def _cells(self, k: int, names: tuple[str, ...], search: str) -> list[Cell]:
        failure_by_name = {name: self._failure_before_fit(k, name) for name in names}
        fitted_as = {name: _same_for_one(name) if k == 1 else name for name in names if failure_by_name[name] is None}
        distinct = list(dict.fromkeys(fitted_as.values()))
        models = [self._em(k, name) for name in distinct]
        starts = self.starts.find(models, search) if models else []
        calls = list(zip(models, distinct, starts, strict=True))
        fitted = dict(zip(distinct, machine.in_threads(self._cell, calls, self.n_jobs), strict=True))
        return [
            fitted[fitted_as[name]]._replace(structure=name)
            if name in fitted_as
            else Cell(k, name, None, failure=failure_by_name[name])
            for name in names
        ]

    def _failure_before_fit(self, k: int, name: str) -> str | None:
        """Reason why such a mixture cannot be fitted to these rows; None if it can."""
        if k > self.summary.rows:
            return f"only {self.summary.rows} rows have a positive weight"
        if self.prior is None and self.spread < REQUIRED_SPREAD[as_structure(name).form]:
            return "the data have no variance in some direction: drop columns that are constant or depend on others"
        return None

    def _cell(self, em: GaussianEM, name: str, start: Components) -> Cell:
        """Fit from this start; if the result is degenerate, fit with an independent search."""
        k = em.n_components
        model = fit_from(self._mixture(k, name), em, start, self.X, self.w)
        if self._degeneracy(model):
            model = self._mixture(k, name).set_params(random_state=self.seed).fit(self.X, sample_weight=self.w)
        if degeneracy := self._degeneracy(model):
            return Cell(k, name, None, failure=FAILURES[degeneracy])
        model.set_params(accelerate=False, n_jobs=self.n_jobs)
        return self._evaluated(k, name, model)

    def _evaluated(self, k: int, name: str, model: GaussianMixture) -> Cell:
        if any(self.scale):
            model = clone(model)._take_fit(model, *self.original, self.scale)
        likelihood, p = model.log_likelihood_, model.n_parameters_
        bic = -2 * likelihood + p * float(np.log(np.ldexp(self.summary.weight, self.scale.weights)))
        return Cell(k, name, model, likelihood, p, bic, -2 * likelihood + 2 * p, model.icl(*self.original))

    def _degeneracy(self, model: GaussianMixture) -> int:
        """Key of `FAILURES` if the model is degenerate, else 0. With a prior, components cannot collapse."""
        em, components = em_of(model)
        return 0 if self.prior is not None else degeneracy_of_fit(em, self.summary.rows, components)

    def _mixture(self, k: int, name: str) -> GaussianMixture:
        options = {"prior": self.prior, "reg_covar": self.reg_covar, "accelerate": True, "n_jobs": 1}
        return GaussianMixture(k, covariance_type=name, **options)

    def _em(self, k: int, name: str) -> GaussianEM:
        return self._mixture(k, name)._model(self.summary, self.source.dtype)


def spread(chunk: Chunk) -> int:
    """3 if the rows vary in all directions, 2 if in all columns, 1 if in some column, 0 if all are equal."""
    weight: Any = chunk.w
    w = weight / weight.sum()
    centered = chunk.X - w @ chunk.X
    size = np.abs(centered).max(axis=0)
    varies = size > ROUNDING * np.abs(chunk.X).max(axis=0)
    if not varies.all():
        return int(varies.any())
    centered /= size
    centered /= np.sqrt(w @ centered**2)
    return 3 if np.linalg.eigvalsh((w[:, None] * centered).T @ centered)[0] > FLAT else 2


def _structure_names(structures: Any, d: int) -> tuple[str, ...]:
    if isinstance(structures, str) and structures == "all":
        return tuple(STRUCTURES) if d > 1 else ("E", "V")
    if isinstance(structures, str) or not np.iterable(structures):
        raise ParameterError(f"structures must be 'all' or a list of names, such as ['EEE', 'VVV']; got {structures!r}")
    names = tuple(dict.fromkeys(structures))
    for name in names:
        as_structure(name)
    if not names:
        raise ParameterError("structures is empty: pass at least one name, or 'all'")
    return names


def _same_for_one(name: str) -> str:
    """Simplest equivalent structure for one component, where E and V are the same."""
    return as_structure(name).name.replace("V", "E").replace("EEE", "VVV")


def _table(ks: list[int], names: tuple[str, ...], results: list[Cell]) -> MixtureTable:
    cells_by_key = {(cell.k, cell.structure): cell for cell in results}
    cells = [[cells_by_key.get((k, name), Cell(k, name, None, failure="not fitted")) for name in names] for k in ks]
    arrays = {
        field: np.array([[getattr(cell, field) for cell in row] for row in cells])
        for field in ("bic", "aic", "icl", "log_likelihood", "n_parameters")
    }
    failures = {(cell.k, cell.structure): cell.failure for row in cells for cell in row if cell.failure is not None}
    k_values = np.array(ks)
    models: dict[tuple[int, str], Any] = {}
    for criterion in CRITERIA:
        for k, name, *_ in _lowest(k_values, names, arrays[criterion], arrays["n_parameters"], N_STORED_MODELS):
            models[k, name] = cells_by_key[k, name].model
    return MixtureTable(k_values, names, **arrays, failures=failures, models=models)


def _lowest(ks: Array, names: tuple[str, ...], values: Array, parameters: Array, count: int) -> list[Choice]:
    """The cells with the lowest values; of structures that are equivalent for one component, the first."""
    row, column = np.indices(values.shape).reshape(2, -1)
    order = np.lexsort([parameters.ravel(), ks[row], values.ravel()])
    results: dict[tuple[int, str], Choice] = {}
    for i in order[np.isfinite(values.ravel()[order])]:
        k, name, value = int(ks[row[i]]), names[column[i]], float(values.flat[i])
        lowest = min((choice.value for choice in results.values()), default=value)
        results.setdefault((k, _same_for_one(name) if k == 1 else name), Choice(k, name, value, value - lowest))
    return list(results.values())[:count]
