"""Results as plain text for a terminal."""

from functools import singledispatch

from coterie.report.choice import ChoiceResult
from coterie.report.comparison import ComparisonResult
from coterie.report.inspection import MachineInfo, ModelInfo, TableInfo
from coterie.report.prediction import PredictionResult
from coterie.report.result import JobResult
from coterie.report.text.choice import choice_text
from coterie.report.text.comparison import comparison_text
from coterie.report.text.fit import fit_text
from coterie.report.text.inspection import machine_text, model_text, table_text
from coterie.report.text.prediction import prediction_text

__all__ = ["as_text"]


@singledispatch
def as_text(result: object) -> str:
    """Render a result as text for a terminal."""
    raise TypeError(
        f"result is of type {type(result).__name__}, but the result of a job is expected: pass what jobs.run returns."
    )


as_text.register(JobResult, fit_text)
as_text.register(ChoiceResult, choice_text)
as_text.register(ComparisonResult, comparison_text)
as_text.register(PredictionResult, prediction_text)
as_text.register(TableInfo, table_text)
as_text.register(ModelInfo, model_text)
as_text.register(MachineInfo, machine_text)
