"""`choose_k`: the number of clusters, from all criteria that apply."""

from dataclasses import replace
from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.arguments import as_rng, in_order, one_of
from coterie.core.progress import Callback, check_callback
from coterie.core.progress_bar import with_verbose
from coterie.core.protocols import parameters_of, takes_series
from coterie.data.row_sample import random_rows
from coterie.errors import ParameterError, ScaleError
from coterie.kmeans.kmeans import KMeans
from coterie.selection.choose_k_by_distances import (
    OBSERVED_ROWS,
    ObservedRun,
    SeriesRun,
    effort_by_distances,
    effort_for_series,
    series_rows,
)
from coterie.selection.choose_k_criteria import CRITERIA, CriteriaRun, Effort
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.gap import positive_weight_rows
from coterie.selection.resampling import count_option
from coterie.selection.sweep import as_ks

QUICK = (
    "tendency", "silhouette", "calinski_harabasz", "davies_bouldin", "elbow", "gap", "prediction_strength", "valleys",
    "icl",
)  # fmt: skip
NORMAL = (*QUICK, "bic")
THOROUGH = (*NORMAL, "dirichlet", "dunn", "stability", "dendrogram", "x_means", "g_means")
EFFORTS = {
    "quick": Effort(3_000, 2_000, 10, 5, ("EII", "VVV"), True, QUICK),
    "normal": Effort(10_000, 2_000, 20, 10, ("EII", "VVI", "EEE", "VVV"), True, NORMAL),
    "thorough": Effort(50_000, 20_000, 50, 25, "all", False, THOROUGH),
}


@in_order("choose_k(X, ks, criteria='auto', estimator=None)")
@with_verbose
def choose_k(
    X: Any,
    ks: Any = "auto",
    *,
    criteria: Any = "auto",
    budget: str = "normal",
    estimator: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callback | None = None,
    verbose: int = 0,
) -> ChooseK:
    r"""Choose the number of clusters from many criteria, and say how clear it is.

    All criteria use the same fits. A criterion gives every K a support from 0 to 1: 1 for the K it prefers, and less
    for K with worse values. The recommended K has the largest weighted sum of supports. No single criterion decides,
    because each has its own scale and its own weaknesses. The result can be one cluster: this happens if the rows split
    no better than data without clusters (see `coterie.selection.tendency`), unless other criteria clearly disagree.

    The result has a strength. 'clear' means that the criteria agree and no other K comes close, 'weak' that there is a
    reason for doubt. 'none' means that no number of clusters is clear; the recommended K is then 1, and the runner-up
    is the best of several similar ones. `ChooseK.reason` says why, names the runner-up, and says what would decide.

    =======================  ======  ========  ==============================================================
    criterion                weight  mixtures  measures
    =======================  ======  ========  ==============================================================
    ``tendency``             1.5     1.5       whether there are clusters; votes for K = 1, or not at all
    ``silhouette``           1       0.5       distance to the cluster compared with the nearest other cluster
    ``prediction_strength``  1       1         clusters that one half of the rows predicts for the other
    ``valleys``              1       1         clusters with fewer rows around them than at their centers
    ``gap``                  0.5     0.25      gap statistic: dispersion compared with that of uniform data
    ``calinski_harabasz``    0.25    0.25      ratio of the variances between and within clusters
    ``davies_bouldin``       0.25    0.25      ratio of cluster spread to the distance between clusters
    ``icl``                  0.4     1.5       integrated completed likelihood of Gaussian mixtures
    ``bic``                  0.1     0.5       Bayesian information criterion of Gaussian mixtures
    ``dirichlet``            0.2     1         number of components of a Dirichlet process mixture of Gaussians
    ``stability``            0.25    0.25      stability of the clusters under resampling
    ``dunn``                 0.1     0.1       smallest distance between clusters divided by the largest diameter
    ``dendrogram``           0.1     0.1       largest jump of the merge heights of Ward linkage
    ``x_means, g_means``     0.1     0.1       K at which recursive splitting of clusters stops
    ``elbow``                0       0         knee of the inertia curve: shown for reference, not used
    =======================  ======  ========  ==============================================================

    The second column of weights is for an `estimator` that is a mixture. Other estimators do not assume Gaussian
    components: ICL, BIC and the Dirichlet process then only advise.

    Clusters of time series (`estimator` is a `TimeSeriesKMeans`, or has the metric 'dtw') are judged by ``tendency``,
    ``silhouette``, ``prediction_strength`` and ``elbow``, with 'thorough' also by ``stability`` and ``dunn``, in the
    metric of the estimator. So are rows with missing values, if the estimator ignores these (``missing='ignore'``), by
    distances in the columns in which both rows have a value; ``tendency`` tests the rows without missing values.

    Do not use it for rings, moons and similar shapes, because no criterion here recognises them (`coterie.diagnose`
    reports such shapes). Do not use it for columns with different units that were not scaled.

    Parameters
    ----------
    X : array, frame, LazyFrame or path of a file (n, d)
        Rows, prepared as for clustering.
    ks : 'auto' or iterable of int, default='auto'
        Numbers of clusters to compare. 'auto' fits every K from 1 to 10, and the K near the optimum of an index if that
        is larger. If the recommended K is at the edge of the range, the range is extended, up to a tenth of the rows
        and at most 180. A recommended K at the edge of other `ks` is never clear. The number of distinct rows is
        compared only if there are at most 10, each repeated at least 5 times on average.
    criteria : 'auto', str or iterable of str, default='auto'
        Criteria, by their names in the table above. 'auto' uses the criteria of `budget`.
    budget : {'quick', 'normal', 'thorough'}, default='normal'
        Number of rows, reference data sets, resamples and criteria. 'quick' uses the criteria from ``tendency`` to
        ``icl`` in the table above and ``elbow``, on at most 3000 rows; 'normal' also uses ``bic``, on at most 10 000.
        'thorough' uses all criteria and all fourteen covariance structures, on at most 50 000. The budget is not a time
        limit, so the result does not depend on the machine.
    estimator : estimator of coterie or None, default=None
        Estimator whose clusters the indices evaluate; None uses `KMeans`.
    sample_weight : array (n,) or None, default=None
        Row weights: a row of weight two is the same as that row twice.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    random_state : None, int, RandomState or Generator, default=None
        Seed or random generator.
    callback : callable or None, default=None
        Called with a `coterie.selection.Progress` after each criterion. If it returns True, `choose_k` stops and
        returns the result of the criteria evaluated so far; so it does after Ctrl-C, with a `FitInterruptedWarning`.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every step.

    Returns
    -------
    ChooseK
        Has `recommended`, `strength`, `runner_up`, `reason`, `votes`, `table()` and `plot()`, and the results of all
        criteria.

    Notes
    -----
    If X has more than 10 000 rows ('normal'), a random sample of that size is used. Clusters with less than about 0.1 %
    of the rows are then not found. The time does not grow with n beyond that size.

    References
    ----------
    .. [1] G. W. Milligan & M. C. Cooper (1985), An examination of procedures for determining the number of clusters in
       a data set, Psychometrika 50, 159-179. https://doi.org/10.1007/BF02294245
    .. [2] O. Arbelaitz et al. (2013), An extensive comparative study of cluster validity indices, Pattern Recognition
       46, 243-256. https://doi.org/10.1016/j.patcog.2012.07.021

    Examples
    --------
    >>> from coterie import choose_k
    >>> from coterie.datasets import make_blobs
    >>> X, _ = make_blobs(300, 2, centers=4, cluster_std=0.3, random_state=0)
    >>> result = choose_k(X, budget="quick", random_state=0)
    >>> result.recommended, result.strength
    (4, 'clear')
    >>> print(result.reason.replace(". ", ".\n"))
    All 7 criteria with a weight prefer 4; elbow prefers 3 but is not counted.
    The rows split better than data without clusters (p = 4.3e-05).
    """
    effort = EFFORTS[one_of("budget", budget, tuple(EFFORTS))]
    names, callback = _criterion_names(criteria, effort), check_callback(callback)
    requested_ks = None if isinstance(ks, str) and ks == "auto" else as_ks(ks)
    rng = as_rng(random_state)
    estimator = KMeans() if estimator is None else estimator
    count_option(estimator)  # raises an error if the estimator has no number of clusters
    run_class: type[CriteriaRun] = CriteriaRun
    columns: list[str] = []
    if takes_series(estimator):
        run_class = SeriesRun
        all_rows, all_weights = series_rows(X, sample_weight)
        effort = effort_for_series(effort, budget, all_rows, estimator, criteria)
    else:
        allow_missing = parameters_of(estimator).get("missing") == "ignore"
        all_rows, all_weights, scale, columns = positive_weight_rows(X, sample_weight, allow_missing)
        if scale.weights:  # most criteria compare weights with the weight of one row
            raise ScaleError(weights=scale.weights)
        if allow_missing and np.isnan(all_rows).any():
            run_class, columns = ObservedRun, []
            effort = effort_by_distances(effort, budget, criteria, "rows with missing values", OBSERVED_ROWS)
    names = _criterion_names(criteria, effort)
    sample = random_rows(len(all_rows), effort.rows, rng)
    rows, w = all_rows[sample], None if all_weights is None else all_weights[sample]
    run = run_class(rows, w, estimator, effort, n_jobs, rng)
    k_values: list[int] | None = run.automatic_ks(names) if requested_ks is None else run.fit_requested(requested_ks)
    with interrupts.outermost():
        while k_values is not None:
            votes = run.collect_votes(np.array(k_values), names, callback)
            result = ChooseK(
                np.array(k_values), votes, run.sweep, run.results, len(rows), len(all_rows), run.perfect_k,
                tuple(columns),
            )  # fmt: skip
            is_final = requested_ks is not None or run.is_stopped
            k_values = None if is_final else run.extended_ks(k_values, result.best_number)
    return replace(result, is_stopped=run.is_stopped)


def _criterion_names(criteria: Any, effort: Effort) -> tuple[str, ...]:
    if isinstance(criteria, str) and criteria == "auto":
        return effort.criteria
    names = (criteria,) if isinstance(criteria, str) else tuple(criteria)
    unknown = [name for name in names if name not in CRITERIA]
    if unknown or not names:
        value = f"got {unknown[0]!r}" if unknown else "got an empty list"
        raise ParameterError(f"criteria must be 'auto' or names from {', '.join(sorted(CRITERIA))}; {value}")
    return tuple(name for name in CRITERIA if name in names)
