"""Results of jobs as plain data, and as text, JSON and HTML."""

from coterie.preparation import SkippedColumn
from coterie.report.inspection import ColumnInfo, MachineInfo, ModelInfo, Package, TableInfo
from coterie.report.json import as_dict
from coterie.report.results import (
    Choice,
    ChoiceResult,
    ClusterSummary,
    ComparisonResult,
    Contestant,
    CriterionVote,
    JobResult,
    PredictionResult,
    TableResult,
    Trait,
)
from coterie.report.text import as_text

__all__ = [
    "Choice",
    "ChoiceResult",
    "ClusterSummary",
    "ColumnInfo",
    "ComparisonResult",
    "Contestant",
    "CriterionVote",
    "JobResult",
    "MachineInfo",
    "ModelInfo",
    "Package",
    "PredictionResult",
    "SkippedColumn",
    "TableInfo",
    "TableResult",
    "Trait",
    "as_dict",
    "as_text",
]
