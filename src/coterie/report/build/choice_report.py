"""The data of a report about the number of clusters."""

import coterie
from coterie.report.build.criteria import criteria
from coterie.report.build.report_source import ReportSource
from coterie.report.build.reproducibility import reproducibility
from coterie.report.html.report import Absent, ChoiceReport
from coterie.report.results import ChoiceResult
from coterie.selection import ChooseK


def build(result: ChoiceResult, source: ReportSource, *, choice: ChooseK, python: str | Absent) -> ChoiceReport:
    return ChoiceReport(
        result=result,
        version=coterie.__version__,
        requested_k=source.k,
        criteria=criteria(choice, result.choice.clusters_by, by_criteria=True),
        reproduce=reproducibility(source, python),
    )
