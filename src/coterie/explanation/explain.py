"""`explain`: a short rule for each cluster."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from coterie.core.arguments import in_order, whole_number
from coterie.core.arrays import Array
from coterie.core.protocols import is_estimator, last_step
from coterie.data.memory import as_weights
from coterie.data.row_sample import sample_rows
from coterie.errors import InputError
from coterie.explanation.columns import Column, Columns, as_columns
from coterie.explanation.cost_ratio import tree_of_clusters
from coterie.explanation.rule_search import RuleSearch, binned
from coterie.explanation.rules import Condition, Explanation, Rule
from coterie.metrics.labels import clusters_of_rows
from coterie.metrics.model_labels import labels_by

SAMPLE, MIN_CLUSTER_ROWS = 20_000, 200  # rows in which rules are searched: of all clusters, and of each at least
VALUES, MIN_SAMPLE = 4_000_000, 2_000  # values of this sample; of a table with many columns it has fewer rows

Part = tuple[Columns, Array, Array | None]  # rows, their clusters and weights
Parts = Callable[[list[str]], Iterable[Part]]  # all parts of a table, with at least these columns


@in_order("explain(model, X)")
def explain(model: Any, X: Any, *, sample_weight: Any = None, max_conditions: int = 3) -> Explanation:
    """Describe each cluster by a short rule in the units of the table.

    A rule is a list of conditions, such as ``Cylinders = 6 and Weight > 3,200``. It comes with the number of rows of
    the cluster that satisfy all of them (coverage), and with the share of the cluster in all rows that do (precision).
    A cluster that no short rule describes is said to have none.

    Not to be used to assign new rows: rules approximate the clusters, and may overlap. Use `predict` of the model.

    Parameters
    ----------
    model : fitted estimator, or labels of shape (n,)
        The clusters. Of an estimator or pipeline of any library: its `labels_` if there is one for each row of `X`,
        otherwise its predictions for `X`. Labels may have any type; -1 means that a row is in no cluster.
    X : array or DataFrame of shape (n, d)
        The rows, in the units in which rules are to be read: the table before it was scaled. Columns of text,
        categories and booleans of a frame are categorical; text with more than 200 values is left out. Bounds of dates
        are dates, preferably ends of months. Missing values satisfy no condition.
    sample_weight : array of shape (n,) or None, default=None
        Row weights, used in the search, in coverage and in precision. Counts of rows are not weighted.
    max_conditions : int, default=3
        Maximum number of columns in a rule.

    Returns
    -------
    Explanation
        Its `rules`, `cost_ratio`, `tree` and `to_dict()` hold the result; `print` shows it.

    Notes
    -----
    Conditions are added by a beam search that maximises phi, the correlation of "satisfies the rule" and "is in the
    cluster", which is close to the geometric mean of coverage and precision for small clusters. Each end of a range and
    each category must raise phi by 0.02. A rule describes a cluster if phi, coverage and precision are at least 0.5.

    Thresholds are numbers with few digits, near quantiles of all rows and of each cluster. The search uses at most
    20,000 rows, with at least 200 of each cluster; rules are then counted in all rows, with the thresholds as they are
    printed. The result does not depend on a random state. A million rows of 20 columns take one to three seconds.

    The cost ratio is that of a threshold tree with one leaf for each cluster [1]_, grown greedily for the K-means cost
    [2]_ on the sample, with standardised columns. It states how well cuts of single columns can describe the clusters:
    if it is near 1, hardly anything is lost. There is none for more than 50 clusters.

    References
    ----------
    .. [1] S. Dasgupta, N. Frost, M. Moshkovitz and C. Rashtchian (2020), Explainable k-means and k-medians clustering,
       ICML. https://proceedings.mlr.press/v119/moshkovitz20a.html
    .. [2] E. S. Laber and L. Murtinho (2021), On the price of explainability for some clustering problems, ICML.
       https://proceedings.mlr.press/v139/laber21a.html

    Examples
    --------
    >>> import numpy as np
    >>> import coterie
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(50, 2)) + [10, 0]])
    >>> model = coterie.KMeans(2, random_state=0).fit(X)
    >>> explanation = coterie.explain(model, X)
    >>> explanation[model.predict([[10, 0]])[0]].text
    'column 0 > 4'
    """
    max_conditions = whole_number("max_conditions", max_conditions, 1)
    columns = as_columns(X)
    codes, names = clusters_of_rows(_labels(model, X, columns.n), columns.n)
    if not names:
        raise InputError("all labels are -1, which means no cluster: there is nothing to explain.")
    w = as_weights(sample_weight, columns.n)
    rows, scaled = search_sample(codes, w, columns.d)
    parts: Parts = lambda _: [(columns, codes, w)]  # noqa: E731
    return explanation(columns.sample(rows), codes[rows], scaled, names, parts, max_conditions=max_conditions)


def search_sample(codes: Array, w: Array | None, d: int) -> tuple[Array, Array]:
    """Rows of the search, at least `MIN_CLUSTER_ROWS` of each cluster if it has them; and the weight of each.

    Weights are scaled so that each cluster has its total weight.
    """
    n = len(codes)
    rows = sample_rows(n, min(SAMPLE, max(MIN_SAMPLE, VALUES // max(d, 1))))
    weight = np.ones(n) if w is None else w
    if len(rows) < n:
        counts = np.bincount(codes[rows] + 1, minlength=int(codes.max()) + 2)
        for code in np.flatnonzero(counts < MIN_CLUSTER_ROWS) - 1:
            members = np.flatnonzero(codes == code)
            rows = np.union1d(rows, members[sample_rows(len(members), MIN_CLUSTER_ROWS)])
    total = np.bincount(codes + 1, weight)
    sampled = np.bincount(codes[rows] + 1, weight[rows], len(total))
    factor = np.divide(total, sampled, out=np.ones_like(total), where=sampled > 0)
    return rows, weight[rows] * factor[codes[rows] + 1]


def explanation(
    sample: Sequence[Column], codes: Array, w: Array, names: Sequence[str], parts: Parts, *,
    max_conditions: int = 3, points: Array | None = None,
) -> Explanation:  # fmt: skip
    """Rules for clusters, from a sample of rows, and counted in all `parts` of the table.

    `points` are the rows of the sample in the space of the K-means cost; by default its standardised columns.
    """
    k = len(names)
    columns = [binned(column, codes, k) for column in sample]
    columns = [column for column in columns if column.bins > 1]
    descriptions: list[tuple[Condition, ...]] = [()] * k
    if columns and k > 1:
        search = RuleSearch(columns, codes, w)
        descriptions = [search.best(j, max_conditions) for j in range(k)]
    used = sorted({condition.column for conditions in descriptions for condition in conditions})
    rules, rows, noise = _counted(descriptions, names, parts(used))
    ratio, tree = tree_of_clusters(sample, columns, codes, w, names, points=points)
    return Explanation(rules, ratio, tree, rows, len(codes), noise)


def _labels(model: Any, X: Any, n: int) -> Any:
    if not is_estimator(model):
        return model
    labels = getattr(last_step(model), "labels_", None)
    if labels is not None and len(labels) == n:
        return np.asarray(labels)
    return labels_by(model, X, n)


def _counted(
    descriptions: Sequence[tuple[Condition, ...]], names: Sequence[str], parts: Iterable[Part]
) -> tuple[tuple[Rule, ...], int, int]:
    """Rules with their counts in all rows, the number of rows, and of those in no cluster."""
    k = len(descriptions)
    counts, weights = np.zeros((3, k), np.int64), np.zeros((3, k))  # in the cluster, fitting the rule, both
    total, rows, noise, is_weighted = 0.0, 0, 0, False
    for columns, codes, w in parts:
        is_member = codes >= 0
        rows, noise, is_weighted = rows + columns.n, noise + int(columns.n - is_member.sum()), w is not None
        total += columns.n if w is None else float(w.sum())
        inside = codes[is_member]
        counts[0] += np.bincount(inside, minlength=k)
        weights[0] += np.bincount(inside, None if w is None else w[is_member], k)
        for j, conditions in enumerate(descriptions):
            if not conditions:
                continue
            mask = np.logical_and.reduce([columns.satisfies(condition) for condition in conditions])
            for i, each in enumerate((mask, mask & (codes == j)), start=1):
                counts[i, j] += np.count_nonzero(each)
                weights[i, j] += np.count_nonzero(each) if w is None else w[each].sum()
    rules = tuple(
        _rule(name, conditions, counts[:, j], weights[:, j], total, is_weighted)
        for j, (name, conditions) in enumerate(zip(names, descriptions, strict=True))
    )
    return rules, rows, noise


def _rule(
    name: str, conditions: tuple[Condition, ...], counts: Array, weights: Array, total: float, is_weighted: bool
) -> Rule:
    inside, fitting, correct = weights.tolist()
    product = inside * (total - inside) * fitting * (total - fitting)
    rows, n_fitting, n_correct = counts.tolist()
    return Rule(
        name,
        conditions,
        rows,
        n_fitting,
        n_correct,
        coverage=correct / inside if inside > 0 else 0.0,
        precision=correct / fitting if fitting > 0 else 0.0,
        phi=(correct * total - inside * fitting) / product**0.5 if product > 0 else 0.0,
        is_weighted=is_weighted,
    )
