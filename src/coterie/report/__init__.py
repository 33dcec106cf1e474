"""Results as plain data, and their renderings."""

from coterie.report.json import as_dict
from coterie.report.result import ClusterSummary, JobResult, SkippedColumn, Trait
from coterie.report.text import as_text

__all__ = ["ClusterSummary", "JobResult", "SkippedColumn", "Trait", "as_dict", "as_text"]
