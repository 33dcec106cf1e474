"""Why a number of clusters, in plain English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coterie.metrics import purity_score

Array = np.ndarray[Any, Any]

WHOLE = 0.97  # of the rows of clusters that lie within one cluster of fewer: these hold those
TINY = 0.01  # of all rows
ROUND = ("EII", "VII", "E", "V")


def reason_for(chosen: Any, names: Mapping[str, str]) -> str:
    """Who speaks for the recommended K, and what the others see."""
    k, test = chosen.recommended, chosen.tendency
    heard = [vote for vote in chosen.votes if vote.k is not None]
    counted = [vote for vote in heard if vote.weight > 0]
    agree = [names[vote.criterion] for vote in counted if vote.k == k]
    against = [vote for vote in counted if vote.k != k]
    if k == 1:
        return f"{_nothing(test, agree)} {_although(against, names)}".strip()
    if not against:
        uncounted = [vote for vote in heard if vote.weight == 0]
        return f"{_unanimous(k, agree, uncounted, names)} {_sure(test)}".strip()
    verb = "agree on" if len(agree) > 1 else "says"
    first = f"{_listed(agree)} {verb} {k}." if agree else f"No criterion favours {k}, which most rank high."
    return f"{_capital(first)} {_capital(spoken(against, names))}: {_cause(chosen, against)}."


def _unanimous(k: int, agree: list[str], uncounted: list[Any], names: Mapping[str, str]) -> str:
    """That all who count say k, and what those say who do not; whoever says k is numbered, whether it counts or not."""
    others = [vote for vote in uncounted if vote.k != k]
    if not others:
        said = [*agree, *(names[vote.criterion] for vote in uncounted)]
        return f"All {len(said)} criteria say {k}." if len(said) > 1 else f"{_capital(_listed(said))} says {k}."
    first = (
        f"All {len(agree)} criteria that count say {k}" if len(agree) > 1 else f"{_capital(_listed(agree))} says {k}"
    )
    return f"{first}; {spoken(others, names)}, which {'do' if len(others) > 1 else 'does'} not count."


def _nothing(test: Any, agree: list[str]) -> str:
    if test is None or test.clustered:
        return f"{_capital(_listed(agree))} {'see' if len(agree) > 1 else 'sees'} one cluster."
    mean, deviation = test.by_chance
    return (
        f"There are no clusters to be seen: the best split has a silhouette of {test.best:.2f}, "
        f"and that of rows without clusters is {mean:.2f} ± {deviation:.2f}."
    )


def _although(against: list[Any], names: Mapping[str, str]) -> str:
    if not against:
        return "No criterion that could answer 1 sees more."
    return f"{_capital(spoken(against, names))}: that describes the shape of the rows, not groups that lie apart."


def _sure(test: Any) -> str:
    if test is None:
        return ""
    mean, deviation = test.by_chance
    return f"Rows without clusters would have a silhouette of {mean:.2f} ± {deviation:.2f}; these have {test.best:.2f}."


def spoken(against: list[Any], names: Mapping[str, str]) -> str:
    """Silhouette says 2, and BIC 7."""
    by_k: dict[int, list[str]] = {}
    for vote in against:
        by_k.setdefault(vote.k, []).append(names[vote.criterion])
    parts = [f"{_listed(who)} {'say' if len(who) > 1 else 'says'} {k}" for k, who in sorted(by_k.items())]
    return _listed(parts)


def _cause(chosen: Any, against: list[Any]) -> str:
    """What makes criteria disagree, by what was measured."""
    k = chosen.recommended
    fewer, more = (sorted({v.k for v in against if sign * (v.k - k) > 0}) for sign in (-1, 1))
    causes = []
    if any(_holds(chosen.sweep, few, k) for few in fewer):
        causes.append(f"the {k} clusters lie within fewer, larger groups")
    if any(_smallest(chosen.sweep, many) < TINY for many in more):
        causes.append("more clusters set a few outlying rows apart")
    said = {vote.criterion: vote.k for vote in chosen.votes}
    if "bic" in said and "icl" in said and (said["bic"] or 0) > (said["icl"] or 0):
        causes.append("components overlap, which BIC allows and ICL does not")
    mixtures = chosen.results.get("mixtures")
    if mixtures is not None and (best := mixtures.best(1)) and best[0].structure not in ROUND:
        causes.append("clusters are not round, as K-means takes them to be")
    return _listed(causes[:2]) if causes else _rivals(chosen.ks, chosen.support)


def _rivals(ks: Array, support: Array) -> str:
    first, second = np.argsort(-support, kind="stable")[:2]
    return f"all in all the support is {support[first]:.2f} for {ks[first]} and {support[second]:.2f} for {ks[second]}"


def _holds(sweep: Any, few: int, many: int) -> bool:
    """Whether each of many clusters lies within one of few."""
    labels = {int(k): np.asarray(mine) for k, mine in zip(sweep.ks, sweep.labels, strict=True)}
    if few not in labels or many not in labels or few < 2:
        return False
    return purity_score(labels[few], labels[many], sample_weight=sweep.sample_weight) >= WHOLE


def _smallest(sweep: Any, k: int) -> float:
    """The share of rows of the smallest of k clusters; 1 where there was no fit."""
    at = np.flatnonzero(sweep.ks == k)
    if len(at) == 0:
        return 1.0
    weight = np.bincount(np.asarray(sweep.labels[int(at[0])]), sweep.sample_weight)
    return float(weight.min() / weight.sum())


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
