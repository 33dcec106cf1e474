"""How reliable is this result? A few sentences, chosen by rules."""

from dataclasses import dataclass

import numpy as np

from coterie.core.formatting import count, join_words
from coterie.report.formatting import percent, short_name, two_places
from coterie.report.html.report import Absent, Criteria, Report
from coterie.web import Markup, tag

# L. Kaufman & P. J. Rousseeuw (1990), Finding Groups in Data, table 2.4: interpretation of mean silhouettes
STRONG, REASONABLE, WEAK = 0.70, 0.50, 0.25
STABLE, MOSTLY_STABLE = 0.90, 0.75  # mean adjusted Rand index of resamples, at least
FEW_UNCERTAIN, SOME_UNCERTAIN = 0.05, 0.25  # share of rows with a probability below 0.9, at most


@dataclass(frozen=True)
class Sentence:
    """A sentence, whether it is a reason to doubt the result, and details, which are not emphasised."""

    text: str
    weak: bool = False
    details: str = ""


def reliability(report: Report) -> Markup:
    """The block: amber if there is a reason to doubt, grey if nothing could be measured that would be one."""
    items = sentences(report)
    has_doubt = any(sentence.weak for sentence in items)
    classes = "note warn sure" if has_doubt else "note sure" if _has_evidence(report) else "note plain sure"
    return tag(
        "section",
        tag("h2", "How reliable is this result?", id="sure-title"),
        tag("ul", [_item(sentence) for sentence in items]),
        cls=classes,
        id="sure",
        aria_labelledby="sure-title",
    )


def _item(sentence: Sentence) -> Markup:
    text = tag("strong", sentence.text) if sentence.weak else sentence.text
    return tag("li", text, f" {sentence.details}" if sentence.details else None)


def sentences(report: Report) -> list[Sentence]:
    """The number of clusters first, then the evidence for and against the clusters."""
    if len(report.names) == 1:
        return _one_cluster(report)
    option = "max_iter" if report.in_python else "--max-iter"
    not_converged = Sentence(f"The fit did not converge: try a larger {option}.", weak=True)
    candidates = [
        _n_clusters(report), _noise(report), _separation(report), _worst_cluster(report), _certainty(report),
        _stability(report), _findings(report), None if report.result.converged else not_converged,
        _not_measured(report),
    ]  # fmt: skip
    return [sentence for sentence in candidates if sentence is not None]


def _noise(report: Report) -> Sentence | None:
    """The number of rows in no cluster, if the algorithm has noise."""
    result = report.result
    if result.noise is None:
        return None
    are = "row is" if result.noise == 1 else "rows are"
    share = result.noise / result.rows_used
    return Sentence(f"{result.noise:,} {are} noise ({percent(share)} of the rows), in no cluster.", weak=share > 0.5)


def _has_evidence(report: Report) -> bool:
    """Whether at least one measure is independent of the objective of the fit."""
    return not all(isinstance(each, Absent) for each in (report.criteria, report.silhouettes, report.stability))


def _one_cluster(report: Report) -> list[Sentence]:
    criteria = report.criteria
    if isinstance(criteria, Criteria) and criteria.choice.recommended == 1:
        text = "No number of clusters is clear: all rows are in one cluster."
        return [
            Sentence(text, weak=True, details=criteria.choice.reason),
            Sentence(f"To fit N clusters anyway, use {'k=N' if report.in_python else '-k N'}."),
        ]
    return [Sentence("All rows are in one cluster: there is nothing to compare.", weak=True)]


def _n_clusters(report: Report) -> Sentence:
    criteria, k = report.criteria, len(report.names)
    if isinstance(criteria, Absent):
        return Sentence(f"{count(k, 'cluster')}. {criteria.reason}")
    choice = criteria.choice
    if choice.recommended != report.result.k:
        text = f"The result has {k} clusters, but {choice.recommended} are recommended."
    elif choice.strength == "clear":
        return Sentence(f"{k} clusters: the number is clear.", details=choice.reason)
    elif choice.strength == "weak":
        text = f"{k} clusters fit best, but the evidence for this number is weak."
    else:
        text = f"The result has {k} clusters, but no number of clusters is clear."
    return Sentence(text, weak=True, details=choice.reason)


def _separation(report: Report) -> Sentence | None:
    silhouettes = report.silhouettes
    if isinstance(silhouettes, Absent):
        return None
    degrees = {STRONG: "are well separated", REASONABLE: "are separated, with some rows between them"}
    degrees |= {WEAK: "touch or overlap", -np.inf: "are hardly separated"}
    degree = next(text for limit, text in degrees.items() if silhouettes.mean > limit)
    text = f"The clusters {degree}: the mean silhouette is {two_places(silhouettes.mean)}."
    return Sentence(text, weak=silhouettes.mean <= WEAK)


def _worst_cluster(report: Report) -> Sentence | None:
    silhouettes = report.silhouettes
    if isinstance(silhouettes, Absent):
        return None
    j = min(range(len(silhouettes.names)), key=lambda i: float(silhouettes.means[i]))
    if silhouettes.means[j] > WEAK:
        return None
    mean, share = two_places(silhouettes.means[j]), percent(float(silhouettes.below[j]), 0)
    return Sentence(
        f"Cluster {short_name(silhouettes.names[j])} is the least separated: its mean silhouette is {mean}, "
        f"and {share} of its rows are nearer to another cluster."
    )


def _certainty(report: Report) -> Sentence | None:
    certainty = report.certainty
    if certainty is None:
        return None
    uncertain = float(certainty.below @ certainty.sizes / certainty.sizes.sum())
    smallest = min(report.result.clusters, key=lambda cluster: cluster.share)
    value = (
        f"the mean probability of a row for its cluster is {two_places(certainty.mean)}. "
        f"It is below 0.9 for {percent(uncertain) if uncertain else 'none'} of the rows. "
        f"The smallest cluster has {percent(smallest.share)} of the rows."
    )
    degrees = {FEW_UNCERTAIN: "certain about nearly all", SOME_UNCERTAIN: "certain about most"}
    degrees[1.0] = "uncertain about many"
    degree = next(text for limit, text in degrees.items() if uncertain <= limit)
    return Sentence(f"The model is {degree} rows: {value}", weak=uncertain > SOME_UNCERTAIN)


def _stability(report: Report) -> Sentence | None:
    stability = report.stability
    if isinstance(stability, Absent):
        return None
    degrees = {STABLE: "stable", MOSTLY_STABLE: "mostly stable", -np.inf: "not stable"}
    degree = next(text for limit, text in degrees.items() if stability.mean >= limit)
    value = f"mean adjusted Rand index {two_places(stability.mean)}, {stability.resamples} resamples"
    return Sentence(f"The clusters are {degree} under resampling ({value}).", weak=stability.mean < MOSTLY_STABLE)


def _findings(report: Report) -> Sentence | None:
    diagnosis = report.diagnosis
    if isinstance(diagnosis, Absent):
        return None
    findings = [finding for finding in diagnosis.findings if finding.severity != "note"]
    if not findings:
        return None
    names = join_words([finding.check.replace("_", " ") for finding in findings])
    is_serious = any(finding.severity == "serious" for finding in findings)
    return Sentence(f"{count(len(findings), 'warning')} below, under “What to watch for”: {names}.", weak=is_serious)


def _not_measured(report: Report) -> Sentence | None:
    """The measures of reliability that are not available."""
    measures = {"separation of the clusters": report.silhouettes, "stability under resampling": report.stability}
    absent = [f"{name} ({each.reason})" for name, each in measures.items() if isinstance(each, Absent)]
    if not absent:
        return None
    conclusion = "" if _has_evidence(report) else " These clusters could not be checked independently."
    return Sentence(f"Not measured: {join_words(absent)}.{conclusion}")
