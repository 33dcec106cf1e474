"""The sentences of `ChooseK.reason`: why a number of clusters is recommended."""

from typing import Any

import numpy as np

from coterie.core.formatting import join_words
from coterie.metrics import purity_score
from coterie.selection.decision import TINY, smallest_share, value_at
from coterie.selection.votes import NAMES

NESTED = 0.97  # purity from which the clusters of one fit count as subsets of the clusters of another
SPHERICAL = ("EII", "VII", "E", "V")


def reasons_for(choice: Any) -> tuple[str, ...]:
    """Sentences: which criteria prefer the recommended K, why others differ, and what would decide it."""
    sentences = _agreement(choice)
    if choice.recommended == choice.perfect_k:
        sentences.append(f"The table has only {choice.perfect_k} distinct rows: each cluster is one of them.")
    if choice.strength == "none" and choice.recommended > 1:
        sentences = [f"No clear number of clusters {choice.range_text}.", *sentences]
    if choice.strength != "clear":
        sentences += [*_doubts(choice), *_what_would_decide(choice)]
    return tuple(sentences)


def _agreement(choice: Any) -> list[str]:
    """Two sentences about the votes."""
    k, test = choice.recommended, choice.tendency
    votes = [vote for vote in choice.votes if vote.k is not None]
    counted = [vote for vote in votes if vote.weight > 0]
    agreeing = [NAMES[vote.criterion] for vote in counted if vote.k == k]
    against = [vote for vote in counted if vote.k != k]
    if k == 1:
        others = "No criterion that can choose K = 1 prefers more clusters."
        if against:
            preferences = _capitalize(describe_votes(against))
            others = f"{preferences}: this describes the shape of the data, not separate groups."
        return [_one_cluster(test, agreeing), others]
    if not counted:
        return ["No criterion has a result for these data."]
    if not against:
        uncounted = [vote for vote in votes if vote.weight == 0]
        sentences = [_unanimous(k, agreeing, uncounted)]
        if test is not None:
            best, (mean, deviation) = f"The best silhouette is {test.best:.2f}", test.by_chance
            sentences.append(f"{best}; for data without clusters it is {mean:.2f} ± {deviation:.2f}.")
        return sentences
    if agreeing:
        first = f"{join_words(agreeing)} {_verb('prefer', agreeing)} {k}."
    else:
        first = f"No criterion prefers {k}, but most rank it high."
    return [_capitalize(first), f"{_capitalize(describe_votes(against))}: {_cause(choice, against)}."]


def _unanimous(k: int, agreeing: list[str], uncounted: list[Any]) -> str:
    """All criteria with a weight prefer k. Criteria without a weight are named if they prefer another K."""
    others = [vote for vote in uncounted if vote.k != k]
    if not others:
        everyone = [*agreeing, *(NAMES[vote.criterion] for vote in uncounted)]
        if len(everyone) > 1:
            return f"All {len(everyone)} criteria prefer {k}."
        return f"{_capitalize(join_words(everyone))} prefers {k}."
    if len(agreeing) > 1:
        first = f"All {len(agreeing)} criteria with a weight prefer {k}"
    else:
        first = f"{_capitalize(join_words(agreeing))} prefers {k}"
    return f"{first}; {describe_votes(others)} but {'are' if len(others) > 1 else 'is'} not counted."


def _one_cluster(test: Any, agreeing: list[str]) -> str:
    if test is None or test.clustered:
        return f"{_capitalize(join_words(agreeing))} {_verb('prefer', agreeing)} one cluster."
    mean, deviation = test.by_chance
    return (
        f"No clusters were found: the best split has a silhouette of {test.best:.2f}, "
        f"and data without clusters reach {mean:.2f} ± {deviation:.2f}."
    )


def describe_votes(against: list[Any]) -> str:
    """List the criteria by the K they prefer: "silhouette prefers 2 and BIC prefers 7"."""
    by_k: dict[int, list[str]] = {}
    for vote in against:
        by_k.setdefault(vote.k, []).append(NAMES[vote.criterion])
    return join_words(
        [f"{join_words(criteria)} {_verb('prefer', criteria)} {k}" for k, criteria in sorted(by_k.items())]
    )


def _doubts(choice: Any) -> list[str]:
    """Reasons for doubt that the votes do not show."""
    k, doubts, results = choice.recommended, choice.decision.doubts, choice.results
    sentences = []
    if "tendency" in doubts:
        sentences.append("Data without clusters split as well.")
    if "grid" in doubts:
        grid = "The rows are a regular grid, as counts, scales and independent columns are"
        sentences.append(f"{grid}: these may be values, not groups.")
    if "tiny" in doubts:
        sentences.append(f"The smallest of the {k} clusters has less than 1 % of the rows.")
    if "stability" in doubts:
        strength = value_at(results["prediction_strength"].ks, results["prediction_strength"].mean, k)
        sentences.append(f"The {k} clusters are not stable under resampling (prediction strength {strength:.2f}).")
    if "valleys" in doubts:
        parts = f"Some of the {k} clusters are parts of one dense region"
        sentences.append(f"{parts}: there are as many rows between them as inside them.")
    return sentences


def _what_would_decide(choice: Any) -> list[str]:
    """One sentence on how to decide between the recommended K and the runner-up; none if there is no runner-up."""
    k, other = choice.recommended, choice.runner_up
    advice = {vote.criterion: vote.k for vote in choice.votes}
    if k == 1:
        components = max(advice.get("icl") or 1, advice.get("bic") or 1)
        if components == 1:
            return []
        return [f"A Gaussian mixture of {components} components would show whether there are elongated clusters."]
    if "edge" in choice.decision.doubts:
        return [f"{k} is the largest number that was compared: larger numbers would decide it."]
    if other is None:
        return []
    few, many = sorted((k, other))
    if _is_nested(choice.sweep, few, many):
        return [f"{few} or {many} depends on the detail you need: the {many} clusters are parts of the {few}."]
    if smallest_share(choice.sweep, many) < TINY:
        return [f"The runner-up is {other}. A comparison without outliers would decide it."]
    if advice.get("icl") == other:
        return [f"The runner-up is {other}. A Gaussian mixture would decide it, because it prefers {other}."]
    return [f"The runner-up is {other}. More rows, or what the clusters are used for, would decide it."]


def _cause(choice: Any, against: list[Any]) -> str:
    """Explain from the fits why criteria disagree."""
    k = choice.recommended
    smaller, larger = (sorted({v.k for v in against if sign * (v.k - k) > 0}) for sign in (-1, 1))
    causes = []
    if any(_is_nested(choice.sweep, few, k) for few in smaller):
        causes.append(f"the {k} clusters are subsets of fewer, larger clusters")
    if any(smallest_share(choice.sweep, many) < TINY for many in larger):
        causes.append("with more clusters, some contain only a few outliers")
    preferred = {vote.criterion: vote.k for vote in choice.votes}
    if "bic" in preferred and "icl" in preferred and (preferred["bic"] or 0) > (preferred["icl"] or 0):
        causes.append("components overlap, which BIC accepts and ICL penalises")
    mixtures = choice.results.get("mixtures")
    if mixtures is not None and (best := mixtures.best(1)) and best[0].structure not in SPHERICAL:
        causes.append("clusters are not spherical, but K-means assumes that they are")
    if causes:
        return "; ".join(causes[:2])
    ks, support = choice.ks, choice.support
    first, second = np.argsort(-support, kind="stable")[:2]
    return f"the total support is {support[first]:.2f} for {ks[first]} and {support[second]:.2f} for {ks[second]}"


def _is_nested(sweep: Any, few: int, many: int) -> bool:
    """Whether each cluster of the fit with `many` clusters is nearly a subset of one of the fit with `few`."""
    labels = {int(k): np.asarray(values) for k, values in zip(sweep.ks, sweep.labels, strict=True)}
    if few not in labels or many not in labels or few < 2:
        return False
    return purity_score(labels[few], labels[many], sample_weight=sweep.sample_weight) >= NESTED


def _verb(verb: str, subjects: list[str]) -> str:
    is_plural = len(subjects) > 1 or subjects == [NAMES["valleys"]]
    return verb if is_plural else f"{verb}s"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
