"""The command ``coterie export``: a fitted model as SQL, ONNX or Python code."""

from coterie.exports import written
from coterie.exports.model_rule import rule_of
from coterie.jobs import ExportJob
from coterie.jobs.option_checks import check_choices
from coterie.jobs.output_files import OutputFiles, check_outputs
from coterie.jobs.prepared_model import load_model
from coterie.report.results import ExportResult


def execute(job: ExportJob) -> ExportResult:
    check_choices(job)
    check_outputs(job.model, force=job.force, **{job.to: job.output})
    rule = rule_of(load_model(job.model))
    content = written(rule, job.to, job.table, job.dialect)
    data = content.encode() if isinstance(content, str) else content
    with OutputFiles(force=job.force) as files:
        size = files.write(job.output, lambda temporary: temporary.write_bytes(data))
    return ExportResult(
        model=job.model.name,
        estimator=rule.estimator,
        clusters=rule.n_clusters,
        columns=rule.columns,
        to=job.to,
        output=str(job.output),
        size=size,
    )
