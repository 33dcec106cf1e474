"""Names of clusters: given ones, or short ones made from rules."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.core.attachments import CLUSTER_NAMES
from coterie.core.formatting import count, truncate
from coterie.errors import InputError, ParameterError
from coterie.explanation.rules import Condition
from coterie.report.results import ClusterSummary, Trait

AUTO = "auto"
LONGEST = 40
CONDITIONS = 2  # that a name is made of


def check_names(names: Sequence[str], k: int) -> None:
    """Reject names that are not one for each cluster, or not different."""
    if names == (AUTO,) or not names:
        return
    if len(names) != k:
        raise ParameterError(
            f"--names has {count(len(names), 'name')} for {count(k, 'cluster')}: give one name for each cluster, in "
            "the order of their numbers, or --names auto."
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ParameterError(f'--names has the name "{repeated[0]}" more than once: use different names.')


def named(clusters: tuple[ClusterSummary, ...], names: Sequence[str], k: int) -> tuple[ClusterSummary, ...]:
    """The clusters with their names; unchanged without names."""
    if not names:
        return clusters
    check_names(names, k)
    texts = automatic_names(clusters) if tuple(names) == (AUTO,) else [names[one.label] for one in clusters]
    return tuple(replace(one, name=name) for one, name in zip(clusters, texts, strict=True))


def names_by_label(clusters: Sequence[ClusterSummary], k: int) -> list[str]:
    """A name for each label below k; a cluster without rows is called by its label."""
    names = [f"cluster {label}" for label in range(k)]
    for one in clusters:
        names[one.label] = one.display_name
    return names


def names_of_model(model: Any, labels: NDArray[np.integer], file_name: str) -> list[str] | None:
    """The names that are stored with a model, for all labels that it predicted; None if it has none."""
    names = getattr(model, CLUSTER_NAMES, None)
    if names is None:
        return None
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not is_list or len(names) <= labels.max(initial=-1):
        raise InputError(f"{file_name} has invalid names of clusters: write the model again with coterie fit --model.")
    return names


def automatic_names(clusters: Sequence[ClusterSummary]) -> list[str]:
    """Short names from the rules, or from what sets a cluster apart; all different."""
    names = [_name(one, _condition_words) for one in clusters]
    names = [_name(one, str) if names.count(name) > 1 else name for one, name in zip(clusters, names, strict=True)]
    return [
        f"{name} ({one.label})" if names.count(name) > 1 else name for one, name in zip(clusters, names, strict=True)
    ]


def _name(cluster: ClusterSummary, words: Any) -> str:
    rule = cluster.rule
    if rule is not None and rule.describes:
        parts = [words(condition) for condition in rule.conditions[:CONDITIONS]]
    else:
        parts = [_trait_words(trait) for trait in cluster.stands_out_by[:CONDITIONS]]
    return truncate(", ".join(parts) or f"cluster {cluster.label}", LONGEST)


def _condition_words(condition: Condition) -> str:
    if condition.values:
        value = condition.values[0]
        others = "" if len(condition.values) == 1 else " …"
        return f"{condition.column} {condition.value_text(value)}{others}"
    low, high = ("early", "late") if isinstance(condition.lower or condition.upper, date) else ("low", "high")
    if condition.lower is None:
        return f"{low} {condition.column}"
    return f"{high} {condition.column}" if condition.upper is None else f"medium {condition.column}"


def _trait_words(trait: Trait) -> str:
    if trait.value is not None:
        return trait.column
    if trait.category is not None and trait.deviation > 0:
        return " ".join(trait.category)
    low, high = ("low", "high") if trait.date is None else ("early", "late")
    return f"{high if trait.deviation > 0 else low} {trait.column}"
