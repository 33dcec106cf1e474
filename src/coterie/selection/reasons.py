"""The sentences of `ChooseK.reason`: why a number of clusters is recommended."""

from typing import Any

import numpy as np

from coterie.core.formatting import join_words
from coterie.metrics import purity_score
from coterie.selection.decision import TINY, column_of_clusters, labels_at, preferred_by, smallest_share, value_at
from coterie.selection.tendency import SIGNIFICANCE
from coterie.selection.votes import NAMES

NESTED = 0.97  # purity from which the clusters of one fit count as subsets of the clusters of another
SPHERICAL = ("EII", "VII", "E", "V")
ELONGATED = 10.0  # difference of BIC from which there is very strong evidence for another covariance structure
MAX_SPREAD_RATIO = 10.0  # at this ratio, the narrower of two columns contributes 1 % of a squared distance


def reasons_for(choice: Any) -> tuple[str, ...]:
    """Sentences: which criteria prefer the recommended K, why others differ, and what would decide it."""
    if choice.recommended == 1:
        return tuple(_one_cluster(choice))
    sentences = _agreement(choice)
    if choice.recommended == choice.perfect_k:
        sentences.append(f"The table has only {choice.perfect_k} distinct rows: each cluster is one of them.")
    if choice.strength == "none":
        sentences = [f"No clear number of clusters {choice.range_text}.", *sentences]
    if choice.strength == "clear":
        return (*sentences, *_scale(choice))
    return (*sentences, *_doubts(choice, choice.recommended), *_scale(choice), *_what_would_decide(choice))


def _one_cluster(choice: Any) -> list[str]:
    """Why no clusters are recommended, and the number of clusters that comes next."""
    test, k = choice.tendency, choice.runner_up
    against = [vote for vote in choice.votes if vote.k not in (None, 1) and vote.weight > 0]
    sentences = [_test_result(test)] if test is not None else []
    if choice.has_clusters:
        sentences.insert(0, f"No clear number of clusters {choice.range_text}.")
        sentences += _doubts(choice, k) if k is not None and k > 1 else []
    agreeing = [NAMES[vote.criterion] for vote in choice.votes if vote.k == 1 and vote.weight > 0]
    if agreeing:
        sentences.append(f"{_capitalize(_prefer(agreeing, 'one cluster'))}.")
    if against:
        sentences.append(f"{_capitalize(describe_votes(against))}.")
    else:
        sentences.append("No criterion with a weight prefers more clusters.")
    if not choice.has_clusters and k is not None and any(vote.k == k for vote in against):
        sentences += _values_of_a_column(choice, k)
    return [*sentences, *_scale(choice)]


def _test_result(test: Any) -> str:
    """The result of the test for clusters, in one sentence."""
    p = f"p = {test.p_value:.2g}"
    if test.clustered:
        return f"The rows split better than data without clusters ({p})."
    return f"No clusters were found: data without clusters split as well ({p}; below {SIGNIFICANCE:g} is significant)."


def _agreement(choice: Any) -> list[str]:
    """Two sentences about the votes."""
    k, test = choice.recommended, choice.tendency
    votes = [vote for vote in choice.votes if vote.k is not None]
    counted = [vote for vote in votes if vote.weight > 0]
    agreeing = [NAMES[vote.criterion] for vote in counted if vote.k == k]
    against = [vote for vote in counted if vote.k != k]
    if not counted:
        return ["No criterion has a result for these data."]
    if not against:
        uncounted = [vote for vote in votes if vote.weight == 0]
        is_significant = test is not None and test.clustered
        return [_unanimous(k, agreeing, uncounted), *([_test_result(test)] if is_significant else [])]
    if agreeing:
        first = f"{_prefer(agreeing, k)}."
    else:
        first = f"No criterion prefers {k}; its total support is {choice.confidence:.2f}."
    return [_capitalize(first), f"{_capitalize(describe_votes(against))}: {_cause(choice, against)}."]


def _unanimous(k: int, agreeing: list[str], uncounted: list[Any]) -> str:
    """All criteria with a weight prefer k. Criteria without a weight are named if they prefer another K."""
    others = [vote for vote in uncounted if vote.k != k]
    if not others:
        everyone = [*agreeing, *(NAMES[vote.criterion] for vote in uncounted)]
        if len(everyone) > 1:
            return f"All {len(everyone)} criteria prefer {k}."
        return f"{_capitalize(_prefer(everyone, k))}."
    if len(agreeing) > 1:
        first = f"All {len(agreeing)} criteria with a weight prefer {k}"
    else:
        first = _capitalize(_prefer(agreeing, k))
    return f"{first}; {describe_votes(others)} but {'are' if len(others) > 1 else 'is'} not counted."


def describe_votes(against: list[Any]) -> str:
    """List the criteria by the K they prefer: "silhouette prefers 2 and BIC prefers 7"."""
    by_k: dict[int, list[str]] = {}
    for vote in against:
        by_k.setdefault(vote.k, []).append(NAMES[vote.criterion])
    return join_words([_prefer(criteria, k) for k, criteria in sorted(by_k.items())])


def _doubts(choice: Any, k: int) -> list[str]:
    """Reasons for doubt about k that the votes do not show."""
    doubts, results, test = choice.decision.doubts, choice.results, choice.tendency
    sentences = []
    if "tendency" in doubts:
        sentences.append(_test_result(test).replace("No clusters were found: d", "D"))
    if "untested" in doubts:
        sentences.append("The test for clusters (tendency) is not one of the criteria.")
    if "grid" in doubts:
        grid = "The rows are a regular grid, as counts, scales and independent columns are"
        sentences.append(f"{grid}: these may be values, not groups.")
    if "tiny" in doubts:
        sentences.append(f"The smallest of the {k} clusters has {_little(choice)}.")
    if "column" in doubts:
        sentences += _values_of_a_column(choice, k)
    if "overlap" in doubts:
        mean = max(float(values.mean()) for values in test.references.values())
        sentences.append(
            f"The clusters overlap: in the test for clusters, the best silhouette is {test.best:.2f}, and data without "
            f"clusters reach {mean:.2f}."
        )
    if "stability" in doubts:
        strength = value_at(results["prediction_strength"].ks, results["prediction_strength"].mean, k)
        sentences.append(f"The {k} clusters are not stable under resampling (prediction strength {strength:.2f}).")
    if "valleys" in doubts:
        apart = value_at(results["valleys"].ks, results["valleys"].apart, k)
        sentences.append(f"Only {apart:.1f} of {k} clusters have fewer rows around them than at their centers.")
    return sentences


def _values_of_a_column(choice: Any, k: int) -> list[str]:
    """One sentence if the k clusters are the values, or groups of the values, of one column."""
    if (column := column_of_clusters(choice, k)) is None:
        return []
    name, n_values = column
    return [
        f"These {k} clusters are {'the values' if n_values == k else f'groups of the {n_values} values'} of {name}."
    ]


def _scale(choice: Any) -> list[str]:
    """One sentence if a column has little influence on distances, also within the recommended clusters."""
    k, X = choice.recommended, choice.sweep.X
    if not choice.columns or X.shape[1] < 2:
        return []
    labels: Any = np.zeros(len(X), int) if k == 1 else labels_at(choice.sweep, k)
    X = X - X.mean(axis=0, dtype=np.float64)
    means = np.array([X[labels == j].mean(axis=0) if (labels == j).any() else X[0] for j in range(labels.max() + 1)])
    spread, within = X.std(axis=0), (X - means[labels]).std(axis=0)
    varying = np.flatnonzero(spread > 0)
    if len(varying) < 2:
        return []
    wide, narrow = varying[spread[varying].argmax()], varying[spread[varying].argmin()]
    if min(spread[wide] / spread[narrow], within[wide] / max(within[narrow], 1e-300)) <= MAX_SPREAD_RATIO:
        return []
    names = choice.columns
    return [
        f"The standard deviation of {names[wide]} is {spread[wide] / spread[narrow]:,.0f} times that of "
        f"{names[narrow]}: if their units differ, standardise the columns first."
    ]


def _what_would_decide(choice: Any) -> list[str]:
    """One sentence on how to decide between the recommended K and the runner-up; none if there is no runner-up."""
    k, other = choice.recommended, choice.runner_up
    if "edge" in choice.decision.doubts:
        return [f"{k} is the largest number that was compared: larger numbers would decide it."]
    if other is None:
        return []
    few, many = sorted((k, other))
    if _is_nested(choice.sweep, few, many):
        return [f"{few} or {many} depends on the detail you need: the {many} clusters are parts of the {few}."]
    if smallest_share(choice.sweep, many) < TINY:
        return [f"The runner-up is {other}. The smallest of {many} clusters has {_little(choice)}."]
    if preferred_by(choice, "icl") == other:
        return [f"The runner-up is {other}. ICL of Gaussian mixtures prefers {other}."]
    return [f"The runner-up is {other}. More rows, or what the clusters are used for, would decide it."]


def _cause(choice: Any, against: list[Any]) -> str:
    """Explain from the fits why criteria disagree."""
    k = choice.recommended
    smaller, larger = (sorted({v.k for v in against if sign * (v.k - k) > 0}) for sign in (-1, 1))
    causes = []
    if any(_is_nested(choice.sweep, few, k) for few in smaller):
        causes.append(f"the {k} clusters are subsets of fewer, larger clusters")
    if any(smallest_share(choice.sweep, many) < TINY for many in larger):
        causes.append(f"with more clusters, some have {_little(choice)}")
    preferred = {vote.criterion: vote.k for vote in choice.votes}
    if (preferred.get("bic") or 0) > (preferred.get("icl") or np.inf):
        causes.append("components overlap, which BIC accepts and ICL penalises")
    if _is_elongated(choice.results.get("mixtures"), k):
        causes.append(f"with {k} components, covariances that are not spherical fit better by BIC")
    if causes:
        return "; ".join(causes[:2])
    ks, support = choice.ks, choice.support
    first, second = np.argsort(-support, kind="stable")[:2]
    return f"the total support is {support[first]:.2f} for {ks[first]} and {support[second]:.2f} for {ks[second]}"


def _little(choice: Any) -> str:
    return f"less than 1 % of the {'rows' if choice.sweep.sample_weight is None else 'weight'}"


def _is_elongated(mixtures: Any, k: int) -> bool:
    """Whether k Gaussian components fit much better if they are not spherical."""
    if mixtures is None or k not in mixtures.ks:
        return False
    bic = dict(zip(mixtures.structures, mixtures.bic[np.flatnonzero(mixtures.ks == k)[0]], strict=True))
    spherical = min((value for name, value in bic.items() if name in SPHERICAL), default=np.nan)
    others = min((value for name, value in bic.items() if name not in SPHERICAL), default=np.nan)
    return bool(others < spherical - ELONGATED)


def _is_nested(sweep: Any, few: int, many: int) -> bool:
    """Whether each cluster of the fit with `many` clusters is nearly a subset of one of the fit with `few`."""
    large, small = labels_at(sweep, few), labels_at(sweep, many)
    if large is None or small is None or few < 2:
        return False
    return purity_score(large, small, sample_weight=sweep.sample_weight) >= NESTED


def _prefer(criteria: list[str], choice: Any) -> str:
    """The criteria and their choice: "silhouette and gap prefer 3"."""
    is_plural = len(criteria) > 1 or criteria == [NAMES["valleys"]]
    return f"{join_words(criteria)} {'prefer' if is_plural else 'prefers'} {choice}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
