"""How sure is this? A few sentences by rules."""

from __future__ import annotations

from dataclasses import dataclass

from coterie.report.html.report import Absent, Criteria, Report
from coterie.report.html.words import count, listed, percent, shown, two_places
from coterie.web import Markup, tag

# L. Kaufman & P. J. Rousseeuw (1990), Finding Groups in Data, table 2.4: what mean silhouettes are worth
STRONG, REASONABLE, WEAK = 0.70, 0.50, 0.25
STABLE, DISSOLVED = 0.90, 0.75  # adjusted Rand index of resamples
CLEAR, BLURRED = 0.05, 0.25  # share of rows that a mixture itself is not sure of
AGREED, DOUBTED = 0.80, 0.55  # support of the K that was chosen


@dataclass(frozen=True)
class Sentence:
    """What is told, and whether it is a reason to doubt."""

    text: str
    weak: bool = False


def sureness(report: Report) -> Markup:
    """The block: amber where there is a reason to doubt, grey where nothing was measured that could be one."""
    told = sentences(report)
    weak = any(sentence.weak for sentence in told)
    kind = "note warn sure" if weak else "note sure" if _evidence(report) else "note plain sure"
    return tag(
        "section",
        tag("h2", "How sure is this?", id="sure-title"),
        tag("ul", [tag("li", sentence.text, cls="weak" if sentence.weak else None) for sentence in told]),
        cls=kind,
        id="sure",
        aria_labelledby="sure-title",
    )


def sentences(report: Report) -> list[Sentence]:
    """The verdict first, then what speaks for it and against it."""
    if len(report.names) == 1:
        return _one_cluster(report)
    found = [
        _number(report),
        _silhouettes(report),
        _worst(report),
        _certainty(report),
        _stability(report),
        _findings(report),
        _fit(report),
        _not_measured(report),
    ]
    return [sentence for sentence in found if sentence is not None]


def _evidence(report: Report) -> bool:
    """Whether anything but the fit itself was asked about the clusters."""
    return not all(isinstance(each, Absent) for each in (report.criteria, report.silhouettes, report.stable))


def _one_cluster(report: Report) -> list[Sentence]:
    chosen = report.criteria
    first = "No structure was found: all rows are one cluster."
    if isinstance(chosen, Criteria) and chosen.recommended == 1:
        return [Sentence(f"{first} {chosen.reason}", weak=True), Sentence("-k N asks for N clusters all the same.")]
    return [Sentence("All rows are in one cluster, as was asked; there is nothing to compare.", weak=True)]


def _number(report: Report) -> Sentence:
    chosen, k = report.criteria, len(report.names)
    if isinstance(chosen, Absent):
        return Sentence(f"{count(k, 'cluster')}. {chosen.why}")
    if chosen.recommended != report.result.k:
        return Sentence(f"{k} clusters are there, and {chosen.recommended} would be recommended. {chosen.reason}", True)
    if chosen.confidence >= AGREED:
        return Sentence(f"{k} clusters, and that is clear. {chosen.reason}")
    if chosen.confidence >= DOUBTED:
        return Sentence(f"{k} clusters is the best answer, not the only one. {chosen.reason}")
    return Sentence(f"{k} clusters is a weak answer: criteria disagree. {chosen.reason}", weak=True)


def _silhouettes(report: Report) -> Sentence | None:
    found = report.silhouettes
    if isinstance(found, Absent):
        return None
    value = f"the mean silhouette is {two_places(found.mean)}"
    if found.mean > STRONG:
        return Sentence(f"Clusters lie well apart: {value}.")
    if found.mean > REASONABLE:
        return Sentence(f"Clusters lie apart, with some rows between them: {value}.")
    if found.mean > WEAK:
        return Sentence(f"Clusters touch or overlap: {value}.")
    return Sentence(f"Clusters hardly lie apart: {value}.", weak=True)


def _worst(report: Report) -> Sentence | None:
    found = report.silhouettes
    if isinstance(found, Absent):
        return None
    j = min(range(len(found.names)), key=lambda i: float(found.means[i]))
    if found.means[j] > WEAK:
        return None
    return Sentence(
        f"Cluster {shown(found.names[j])} is the least certain: its mean silhouette is {two_places(found.means[j])}, "
        f"and {percent(float(found.below[j]), 0)} of its rows are nearer to another one."
    )


def _certainty(report: Report) -> Sentence | None:
    found = report.certainty
    if found is None:
        return None
    doubtful = float(found.below @ found.sizes / found.sizes.sum())
    smallest = min(report.result.clusters, key=lambda cluster: cluster.share)
    value = (
        f"its probabilities of rows' own clusters are {two_places(found.mean)} in the mean, and below 0.9 for "
        f"{percent(doubtful) if doubtful else 'none'} of the rows. "
        f"Its smallest cluster has {percent(smallest.share)} of them."
    )
    if doubtful <= CLEAR:
        return Sentence(f"The model itself is sure of nearly all rows: {value}")
    if doubtful <= BLURRED:
        return Sentence(f"The model itself is sure of most rows: {value}")
    return Sentence(f"The model itself is not sure where many rows belong: {value}", weak=True)


def _stability(report: Report) -> Sentence | None:
    found = report.stable
    if isinstance(found, Absent):
        return None
    value = f"adjusted Rand index {two_places(found.mean)} over {found.resamples} resamples"
    if found.mean >= STABLE:
        return Sentence(f"The clusters come back when rows are drawn anew ({value}).")
    if found.mean >= DISSOLVED:
        return Sentence(f"The clusters mostly come back when rows are drawn anew ({value}).")
    return Sentence(f"The clusters do not come back when rows are drawn anew ({value}).", weak=True)


def _findings(report: Report) -> Sentence | None:
    found = report.diagnosis
    if isinstance(found, Absent):
        return None
    graver = [finding for finding in found.findings if finding.severity != "note"]
    if not graver:
        return None
    names = listed([finding.check.replace("_", " ") for finding in graver])
    serious = any(finding.severity == "serious" for finding in graver)
    return Sentence(f"{count(len(graver), 'finding')} below under “What to watch for”: {names}.", weak=serious)


def _fit(report: Report) -> Sentence | None:
    if report.result.converged:
        return None
    return Sentence("The fit had not settled when it reached its last iteration: try a larger --max-iter.", weak=True)


def _not_measured(report: Report) -> Sentence | None:
    """What would speak for the clusters, or against them, and is not known."""
    asked = {"how far they lie apart": report.silhouettes, "whether they come back": report.stable}
    lacking = [f"{what} ({found.why})" for what, found in asked.items() if isinstance(found, Absent)]
    if not lacking:
        return None
    alone = "" if _evidence(report) else " So nothing but the fit itself speaks for these clusters."
    return Sentence(f"Not measured: {listed(lacking)}.{alone}")
