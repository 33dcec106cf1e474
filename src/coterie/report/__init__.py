"""Results of jobs as plain data, and as text, JSON and HTML."""

from coterie.report.choice import Choice, ChoiceResult, CriterionVote
from coterie.report.comparison import ComparisonResult, Contestant
from coterie.report.inspection import ColumnInfo, MachineInfo, ModelInfo, Package, TableInfo
from coterie.report.json import as_dict
from coterie.report.prediction import PredictionResult
from coterie.report.result import ClusterSummary, JobResult, Trait
from coterie.report.table import SkippedColumn, TableResult
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
