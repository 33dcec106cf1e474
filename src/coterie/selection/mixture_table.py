"""How many components, and of which shapes: information criteria of Gaussian mixtures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coterie import interrupts, machine
from coterie.core.arguments import as_rng, one_of, whole_number
from coterie.core.errors import ParameterError
from coterie.core.progress import Callback, check_callback, reported
from coterie.core.protocols import Chunk
from coterie.data import as_source
from coterie.families.structures import STRUCTURES, as_structure
from coterie.mixture.gaussian import Components, GaussianEM
from coterie.mixture.mixture import GaussianMixture
from coterie.mixture.search import sound_first
from coterie.selection.mixture_starts import Starts
from coterie.selection.sweep import Sweep, as_ks
from coterie.selection.text_table import aligned

Array = np.ndarray[Any, Any]

CRITERIA = ("bic", "aic", "icl")
FAILURES = {1: "a component is flat in some direction", 2: "a component rests on too few rows"}
COARSE = 1.0  # log-likelihood still to be gained, of a thousand rows, at which a coarse cell is done
ITERATIONS = 50  # of a coarse cell at most
NEEDED = {"spherical": 1, "diag": 2, "tied": 3, "full": 3}  # of `spread`, for a covariance of that form
FLAT = 1e-12  # of the variance of the columns, below which a direction has none
ROUNDING = 1e-13  # of the size of a column, within which it is constant
KEPT = 3  # best models by each criterion that are kept


class Choice(NamedTuple):
    """One cell of the table."""

    k: int
    structure: str
    value: float  # of the criterion: lower is better
    behind: float  # how much above the best

    def __str__(self) -> str:
        return f"{self.structure},{self.k}"


@dataclass(frozen=True)
class MixtureTable:
    """What `mixture_table` found: a row for each number of components, a column for each structure."""

    ks: Array  # (m,) numbers of components
    structures: tuple[str, ...]
    bic: Array  # (m, structures) lower is better; infinite where there is no sound fit
    aic: Array  # (m, structures)
    icl: Array  # (m, structures)
    log_likelihood: Array  # (m, structures) minus infinity where there is no sound fit
    n_parameters: Array  # (m, structures)
    failures: dict[tuple[int, str], str]  # why cells have no number
    models: dict[tuple[int, str], GaussianMixture]  # fitted: the best three by each criterion

    def best(self, count: int = 3, criterion: str = "bic") -> list[Choice]:
        """The cells of the lowest values, best first; of equal ones those with fewer components and parameters."""
        whole_number("count", count, 1)
        values = getattr(self, one_of("criterion", criterion, CRITERIA))
        return _lowest(self.ks, self.structures, values, self.n_parameters, count)

    def table(self, criterion: str = "bic", mclust: bool = False) -> list[dict[str, Any]]:
        """A row for each number of components; None where there is no sound fit.

        mclust's sign is the other one, so that higher is better (its AIC as well).
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
            lines.append(f"{criterion.upper()}, lower is better: {first or 'no sound fit'}")
        return "\n".join(lines)


def mixture_table(
    X: Any,
    ks: Iterable[int] = range(1, 10),
    structures: str | Iterable[str] = "all",
    *,
    sample_weight: Any = None,
    prior: Any = None,
    reg_covar: float = 1e-6,
    starts: Any = "search",
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
) -> MixtureTable:
    r"""BIC, AIC and ICL of Gaussian mixtures over the number of components and the covariance structure.

    With :math:`\ell` the log-likelihood, p the number of free parameters and n the weight of the rows,

    .. math:: \mathrm{BIC} = -2 \ell + p \log n, \qquad \mathrm{AIC} = -2 \ell + 2 p, \qquad
              \mathrm{ICL} = \mathrm{BIC} + 2 \sum_i w_i \log \frac{1}{\max_k r_{ik}}

    where :math:`r_{ik}` is the posterior of component k for row i. Lower is better in all three; mclust [1]_ prints
    BIC and ICL with the other sign. BIC finds the density with the fewest words; two components may make up one cluster
    that is not Gaussian. ICL [2]_ adds what it costs not to know which component a row is from, so it prefers
    components that lie apart: clusters. AIC takes more components than there are where rows are many.

    Do not use it for clusters that are no ellipsoids, nor take the best cell for the truth where the next ones are
    within a few units: differences of BIC below 2 say next to nothing, above 10 a lot [3]_.

    Parameters
    ----------
    X : array, frame, LazyFrame, path of a file, or Dask array (n, d)
        The rows.
    ks : numbers of components, default=range(1, 10)
    structures : 'all' or names of structures
        mclust's fourteen names, or scikit-learn's aliases; 'all' is all of them, for one column 'E' and 'V'.
    sample_weight : array (n,), optional
        How many rows each row stands for: a row of weight two is that row twice.
    prior, reg_covar
        As in `GaussianMixture`.
    starts : 'search' or Sweep, default='search'
        Where EM begins. The clusters of a `Sweep` of the same rows, each cell from those of its K and for at most 50
        iterations, make a coarse table in a small part of the time.
    n_jobs : int or None, default=None
        Threads, one a cell; None is all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator
    callback : callable or None, default=None
        Called after every cell with a `Progress`; a true return ends it with what there is.

    Returns
    -------
    MixtureTable

    Notes
    -----
    A cell has no number (None in `table`, infinite in the arrays) and a word in `failures` where its only fits are
    spurious: a component on fewer rows than its shape needs, or flat as the rows are nowhere; or where all rows have no
    spread in some direction. The likelihood is unbounded there. A prior bounds it, and then every cell has its number.

    Structures that are the same for one component are fitted once. Cells of one K share their starts: the clusters of a
    model-based tree, which all K share, K-means, thirty random ones, and what the other structures found. So a
    structure is at least as likely as its special cases. Starts are sought on at most 2000 rows, or more for many
    components; EM then runs on all.

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
    >>> found = mixture_table(X, ks=range(1, 5), structures=["EII", "VVI", "VVV"], random_state=0)
    >>> str(found.best()[0])
    'VVV,3'
    """
    numbers, watch = as_ks(ks), check_callback(callback)
    source = as_source(X, sample_weight)
    names = _names(structures, source.shape[1])
    grid = _Grid(getattr(source, "X", X), sample_weight, prior, reg_covar, as_rng(random_state), n_jobs)
    rows = grid.rows(numbers, names) if _is_search(starts) else grid.coarse_rows(numbers, names, starts)
    cells = [f"{name},{k}" for k in numbers for name in names]
    with machine.one_blas_thread, interrupts.outermost():
        found = list(reported(rows, cells, watch, [k for k in numbers for _ in names]))
    return _table(numbers, names, found)


class Cell(NamedTuple):
    """A mixture fitted, and what it is judged by; or why there is none."""

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
    """The cells of the table, one number of components after another."""

    def __init__(self, X: Any, w: Any, prior: Any, reg_covar: float, rng: np.random.Generator, n_jobs: int | None):
        self.X, self.w, self.prior, self.reg_covar, self.n_jobs = X, w, prior, reg_covar, n_jobs
        self.source, self.engine, self.summary = self._mixture(1, "VVV")._open(X, w, first=True)
        self.seed = int(rng.integers(2**31))
        self.starts = Starts(self._em(1, "VVV"), self.source, rng, n_jobs)
        self.spread = spread(self.starts.chunk)

    def rows(self, ks: list[int], names: tuple[str, ...]) -> Any:
        for k in ks:
            yield from self._cells(k, names)

    def coarse_rows(self, ks: list[int], names: tuple[str, ...], clusters: Sweep) -> Iterator[Cell]:
        """The same from one start each, and not to the end."""
        labels = dict(zip(clusters.ks.tolist(), clusters.labels, strict=True))
        calls = [(k, name, labels[k]) for k in ks for name in names]
        return machine.in_threads(self._coarse_cell, calls, self.n_jobs)

    def _coarse_cell(self, k: int, name: str, labels: Array) -> Cell:
        if len(np.unique(labels)) < k:
            return Cell(k, name, None, failure="it has fewer clusters")
        model = self._mixture(k, name).set_params(
            init_params=labels, tol=COARSE, callback=lambda progress: progress.iteration >= ITERATIONS
        )
        model.fit(self.X, sample_weight=self.w)
        unsound = self._unsound(model)
        return Cell(k, name, None, failure=FAILURES[unsound]) if unsound else self._judged(k, name, model)

    def _cells(self, k: int, names: tuple[str, ...]) -> list[Cell]:
        failed = {name: self._impossible(k, name) for name in names}
        same = {name: _same_for_one(name) if k == 1 else name for name in names if failed[name] is None}
        different = list(dict.fromkeys(same.values()))
        models = [self._em(k, name) for name in different]
        starts = self.starts.find(models) if models else []
        calls = list(zip(models, different, starts, strict=True))
        fitted = dict(zip(different, machine.in_threads(self._cell, calls, self.n_jobs), strict=True))
        return [
            fitted[same[name]]._replace(structure=name) if name in same else Cell(k, name, None, failure=failed[name])
            for name in names
        ]

    def _impossible(self, k: int, name: str) -> str | None:
        """Why no mixture of that kind can be fitted to these rows, if so."""
        if k > self.summary.rows:
            return f"only {self.summary.rows} rows count"
        if self.prior is None and self.spread < NEEDED[as_structure(name).form]:
            return "rows have no spread in some direction: drop columns that are constant or follow from others"
        return None

    def _cell(self, em: GaussianEM, name: str, start: Components) -> Cell:
        """The mixture from this start; where that ends spurious, from a search of its own."""
        k = em.n_components
        model = self._mixture(k, name).set_params(warm_start=True)
        model._fitted_model, model._components = em, start
        model.fit(self.X, sample_weight=self.w)
        if self._unsound(model):
            model = self._mixture(k, name).set_params(random_state=self.seed).fit(self.X, sample_weight=self.w)
        if unsound := self._unsound(model):
            return Cell(k, name, None, failure=FAILURES[unsound])
        model.set_params(warm_start=False, accelerate=False, n_jobs=self.n_jobs)
        return self._judged(k, name, model)

    def _judged(self, k: int, name: str, model: GaussianMixture) -> Cell:
        likelihood, p = model.log_likelihood_, model.n_parameters_
        bic = -2 * likelihood + p * float(np.log(self.summary.weight))
        return Cell(k, name, model, likelihood, p, bic, -2 * likelihood + 2 * p, model.icl(self.X, self.w))

    def _unsound(self, model: GaussianMixture) -> int:
        """What of it is spurious; nothing where a prior keeps components from collapsing."""
        return 0 if self.prior is not None else sound_first(model._fitted_model, self.summary.rows, model._components)

    def _mixture(self, k: int, name: str) -> GaussianMixture:
        options = {"prior": self.prior, "reg_covar": self.reg_covar, "accelerate": True, "n_jobs": 1}
        return GaussianMixture(k, covariance_type=name, **options)

    def _em(self, k: int, name: str) -> GaussianEM:
        return self._mixture(k, name)._model(self.summary, self.source.dtype)


def _is_search(starts: Any) -> bool:
    if isinstance(starts, Sweep):
        return False
    return bool(one_of("starts", starts, ("search", "a Sweep")) == "search")


def spread(chunk: Chunk) -> int:
    """3 if rows spread in all directions, 2 if in all columns, 1 if in some column, 0 if all are alike."""
    weight: Any = chunk.w
    w = weight / weight.sum()
    away = chunk.X - w @ chunk.X
    size = np.abs(away).max(axis=0)
    wide = size > ROUNDING * np.abs(chunk.X).max(axis=0)
    if not wide.all():
        return int(wide.any())
    away /= size
    away /= np.sqrt(w @ away**2)
    return 3 if np.linalg.eigvalsh((w[:, None] * away).T @ away)[0] > FLAT else 2


def _names(structures: Any, d: int) -> tuple[str, ...]:
    if isinstance(structures, str) and structures == "all":
        return tuple(STRUCTURES) if d > 1 else ("E", "V")
    if isinstance(structures, str) or not np.iterable(structures):
        raise ParameterError(f"structures must be 'all' or a list of names, such as ['EEE', 'VVV']; got {structures!r}")
    names = tuple(dict.fromkeys(structures))
    for name in names:
        as_structure(name)
    if not names:
        raise ParameterError("structures is empty: name at least one, or pass 'all'")
    return names


def _same_for_one(name: str) -> str:
    """Of one component, E and V are the same: the simplest structure that is left."""
    return as_structure(name).name.replace("V", "E").replace("EEE", "VVV")


def _table(ks: list[int], names: tuple[str, ...], found: list[Cell]) -> MixtureTable:
    done = {(cell.k, cell.structure): cell for cell in found}
    cells = [[done.get((k, name), Cell(k, name, None, failure="not fitted")) for name in names] for k in ks]
    arrays = {
        field: np.array([[getattr(cell, field) for cell in row] for row in cells])
        for field in ("bic", "aic", "icl", "log_likelihood", "n_parameters")
    }
    failures = {(cell.k, cell.structure): cell.failure for row in cells for cell in row if cell.failure is not None}
    numbers = np.array(ks)
    models: dict[tuple[int, str], Any] = {}
    for criterion in CRITERIA:
        for k, name, *_ in _lowest(numbers, names, arrays[criterion], arrays["n_parameters"], KEPT):
            models[k, name] = done[k, name].model
    return MixtureTable(numbers, names, **arrays, failures=failures, models=models)


def _lowest(ks: Array, names: tuple[str, ...], values: Array, parameters: Array, count: int) -> list[Choice]:
    """The cells of the lowest values; of structures that are the same for one component, the first."""
    row, column = np.indices(values.shape).reshape(2, -1)
    order = np.lexsort([parameters.ravel(), ks[row], values.ravel()])
    found: dict[tuple[int, str], Choice] = {}
    for i in order[np.isfinite(values.ravel()[order])]:
        k, name, value = int(ks[row[i]]), names[column[i]], float(values.flat[i])
        least = min((choice.value for choice in found.values()), default=value)
        found.setdefault((k, _same_for_one(name) if k == 1 else name), Choice(k, name, value, value - least))
    return list(found.values())[:count]
