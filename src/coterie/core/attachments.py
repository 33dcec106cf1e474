"""Attributes that jobs and users add to a fitted estimator. They describe one fit, so the next fit deletes them."""

from typing import Any

TRAINING_SUMMARY = "training_summary_"  # a `TrainingSummary`
CLUSTER_NAMES = "cluster_names_"  # a list of texts, one for each label


def detach(estimator: Any, *attributes: str) -> None:
    """Delete what was added after an earlier fit, and these attributes, which the new fit may not set."""
    for name in (TRAINING_SUMMARY, CLUSTER_NAMES, *attributes):
        vars(estimator).pop(name, None)
