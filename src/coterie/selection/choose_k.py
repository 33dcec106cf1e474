"""How many clusters there are, asked of every criterion that fits, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie import interrupts
from coterie.core.arguments import as_rng, one_of
from coterie.core.errors import ParameterError
from coterie.core.progress import Callback, check_callback
from coterie.kmeans.kmeans import KMeans
from coterie.selection.choose_k_result import ChooseK
from coterie.selection.gap import counting_rows
from coterie.selection.resampling import count_option
from coterie.selection.choose_k_criteria import CRITERIA, Effort, Study
from coterie.selection.sweep import as_ks
from coterie.selection.tendency import drawn

QUICK = ("tendency", "silhouette", "calinski_harabasz", "davies_bouldin", "elbow", "icl")
NORMAL = (*QUICK, "bic", "gap", "prediction_strength", "dirichlet")
EFFORTS = {
    "quick": Effort(3_000, 2_000, 10, 5, ("EII", "VVV"), True, QUICK),
    "normal": Effort(10_000, 4_000, 20, 10, ("EII", "VVI", "EEE", "VVV"), True, NORMAL),
    "thorough": Effort(
        50_000, 20_000, 50, 25, "all", False, (*NORMAL, "dunn", "stability", "dendrogram", "x_means", "g_means")
    ),
}


def choose_k(
    X: Any,
    ks: Any = "auto",
    methods: Any = "auto",
    *,
    budget: str = "normal",
    estimator: Any = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    callback: Callback | None = None,
) -> ChooseK:
    r"""How many clusters there are, and how sure that is.

    Every criterion that fits is asked, and all share the same fits. Each has its own scale and its own blind spot, so
    none decides: a criterion gives every K a support from 0 to 1, which is 1 for its best and falls with the distance
    to it, and the K of the largest weighted sum is recommended. One cluster is an answer: it is given where the rows
    split no better than rows without clusters do (see `coterie.selection.tendency`), unless other criteria are sure.

    =======================  ======  ==================================================================
    criterion                weight  asks
    =======================  ======  ==================================================================
    ``tendency``             2       whether there are clusters at all; speaks for one, or not at all
    ``icl``                  3/2     what describes the rows in fewest words, as separate ellipsoids
    ``silhouette``           1       how much nearer rows are to their own cluster than to the next
    ``prediction_strength``  1       the most clusters that one half of the rows predicts for the other
    ``dirichlet``            1       how many Gaussians a Dirichlet process keeps
    ``calinski_harabasz``    1/2     variance between clusters by variance within
    ``davies_bouldin``       1/2     spread of clusters by the distance between them
    ``gap``                  1/2     how much tighter clusters are than those of even rows
    ``bic``                  1/2     what describes the rows in fewest words, overlaps allowed
    ``dunn``                 1/4     the smallest gap by the largest diameter
    ``stability``            1/4     whether clusters come back when rows are drawn anew
    ``dendrogram``           1/4     the largest jump in Ward's tree
    ``x_means, g_means``     1/4     where splitting clusters again and again comes to an end
    ``elbow``                0       where the curve of inertia bends: drawn, but it decides nothing
    =======================  ======  ==================================================================

    Do not use it for clusters that are rings or moons, which all these criteria miss (`coterie.diagnose` tells), nor on
    columns of different units that were not scaled.

    Parameters
    ----------
    X : array, frame, LazyFrame or path of a file (n, d)
        The rows, as they will be clustered.
    ks : 'auto' or ints, default='auto'
        Numbers of clusters. 'auto' begins with 1 to 12, and goes on as long as an index is best near the end.
    methods : 'auto' or names, default='auto'
        Criteria, of those above. 'auto' is what `budget` says.
    budget : {'quick', 'normal', 'thorough'}, default='normal'
        How many rows, references and criteria: 'normal' is up to ``gap`` and ``bic`` above; 'quick' leaves out what
        takes longest, 'thorough' has all, and all fourteen covariance structures. Seconds would make the answer depend
        on the machine.
    estimator : estimator of coterie, optional
        What makes the clusters that indices judge; K-means unless given.
    sample_weight : array (n,), optional
        How many rows each stands for.
    n_jobs : int or None, default=None
        Threads; None is all cores. The answer does not depend on it.
    random_state : None, int, RandomState or Generator, default=0
    callback : callable or None, default=None
        Called with a `coterie.selection.Progress` after each piece of work; a true answer ends it with what there is.

    Returns
    -------
    ChooseK
        `recommended`, `votes`, `reason`, `table()`, `plot()`, and every result that went into them.

    Notes
    -----
    Of more than 10 000 rows ('normal'), as many drawn ones are looked at: clusters of fewer than some 0.1 % of the rows
    are not seen. Time does not grow with n beyond that.

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
    >>> found = choose_k(X, budget="quick")
    >>> found.recommended
    4
    >>> print(found.reason.replace(". ", ".\n"))
    All 4 criteria that count say 4; elbow says 3, which does not count.
    Rows without clusters would have a silhouette of 0.55 ± 0.02; these have 0.93.
    """
    effort = EFFORTS[one_of("budget", budget, tuple(EFFORTS))]
    names, watch = _names(methods, effort), check_callback(callback)
    wanted = None if isinstance(ks, str) and ks == "auto" else as_ks(ks)
    rng = as_rng(random_state)
    everything, weights = counting_rows(X, sample_weight)
    kept = drawn(len(everything), effort.rows, rng)
    rows, w = everything[kept], None if weights is None else weights[kept]
    estimator = KMeans() if estimator is None else estimator
    count_option(estimator)  # an error if it has none
    study = Study(rows, w, estimator, effort, n_jobs, rng)
    numbers = study.range(names) if wanted is None else study.given(wanted)
    with interrupts.outermost():
        votes = study.ask(np.array(numbers), names, watch)
    return ChooseK(np.array(numbers), votes, study.swept, study.results, len(rows), len(everything))


def _names(methods: Any, effort: Effort) -> tuple[str, ...]:
    if isinstance(methods, str) and methods == "auto":
        return effort.methods
    names = (methods,) if isinstance(methods, str) else tuple(methods)
    unknown = [name for name in names if name not in CRITERIA]
    if unknown or not names:
        found = f"got {unknown[0]!r}" if unknown else "there are none"
        raise ParameterError(f"methods must be 'auto' or of {', '.join(sorted(CRITERIA))}; {found}")
    return tuple(name for name in CRITERIA if name in names)
