"""Results as plain text for a terminal."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

from coterie.core.formatting import count, first_names, format_bytes, table_lines
from coterie.report import results
from coterie.report.formatting import number, trait_text, two_places, without_traits
from coterie.report.inspection import CompiledKernels, MachineInfo, ModelInfo, TableInfo

MARK = " ◀"
CHOICE_MARKS = {"clear": "✓", "weak": "?", "none": "?"}  # a tick only where there is no doubt
RUN_HEADER = ["run", "K", "inertia", "silhouette", "Davies–Bouldin", "Calinski–Harabasz", "stability", "smallest",
              "seconds"]  # fmt: skip
RULE_HEADER = "rule, in the units of the table"
COLUMN_HEADER = ["column", "kind", "missing", "distinct", "min", "mean", "max", ""]


@singledispatch
def as_text(result: object) -> str:
    """Render a result as text for a terminal."""
    raise TypeError(
        f"result is of type {type(result).__name__}, but the result of a job is expected: pass what jobs.run returns."
    )


@as_text.register
def _(result: results.JobResult) -> str:
    """The data and its preparation, the fit, the clusters, and the files written."""
    lines = [
        *preparation_lines(result),
        *([] if result.choice is None else _choice_lines(result.choice)),
        fit_line(result),
    ]
    table = cluster_rows(result)
    lines += ["", *table_lines(table, left=[len(table[0]) - 1]), *_rule_lines(result), *written_files(result)]
    return "\n".join(lines)


@as_text.register
def _(result: results.ChoiceResult) -> str:
    """The data, the table of criteria, the reason, and the votes."""
    votes = [
        [vote.criterion, "–" if vote.k is None else str(vote.k), two_places(vote.confidence), f"{vote.weight:g}"]
        for vote in result.choice.votes
    ]
    notes = [f"  {vote.criterion}: {vote.note}" for vote in result.choice.votes if vote.note]
    vote_lines = [*table_lines([["criterion", "K", "margin", "weight"], *votes], left=[0]), *notes]
    return "\n".join([*preparation_lines(result), *_choice_lines(result.choice), "", *vote_lines, *_page_lines(result)])


@as_text.register
def _(result: results.ComparisonResult) -> str:
    """A line for each run, and the agreement of the best runs."""
    has_several_ks = len(result.runs) > len(result.agreement)
    rows = [
        [
            f"{run.method}{MARK if has_several_ks and run.best else ''}", str(run.k), number(run.inertia),
            two_places(run.silhouette), two_places(run.davies_bouldin), number(run.calinski_harabasz),
            two_places(run.stability), f"{run.smallest:,}", two_places(run.seconds),
        ]
        for run in result.runs
    ]  # fmt: skip
    lines = [*preparation_lines(result), "", *table_lines([RUN_HEADER, *rows], left=[0])]
    if len(result.agreement) > 1:
        best = [f"{run.method}, {run.k}" for run in result.runs if run.best]
        cells = [[name, *map(two_places, row)] for name, row in zip(best, result.agreement, strict=True)]
        lines += ["", *table_lines([["agreement (adjusted Rand)", *best], *cells], left=[0])]
    if result.recommendation is not None:
        recommendation = result.recommendation
        mark = CHOICE_MARKS[recommendation.strength]
        lines += ["", f"{mark} {recommendation.heading}: {recommendation.reason}"]
    return "\n".join([*lines, *_page_lines(result)])


@as_text.register
def _(result: results.PredictionResult) -> str:
    """The table, and the number of rows in each cluster."""
    names = {-1: "noise", **(result.names or {})}
    rows = [
        [names.get(label, str(label)), f"{size:,}", f"{size / result.rows_used:.1%}"]
        for label, size in result.sizes.items()
    ]
    lines = [
        f"{result.source}  {count(result.rows)} · {result.estimator} of {result.model}",
        f"missing: {result.missing}",
        "",
        *table_lines([["cluster", "rows", "share"], *rows]),
    ]
    return "\n".join([*lines, *([] if result.output is None else [_output_line(result)])])


@as_text.register
def _(result: results.LabelComparison) -> str:
    """The agreement, the table of both labels, and the number of rows that moved."""
    rows = [[label, *(f"{cell:,}" for cell in cells)] for label, cells in
            zip(result.labels_before, result.table, strict=True)]  # fmt: skip
    header = [f"{result.source} ↓ {result.other} →", *result.labels_after]
    left_out = result.rows - result.rows_compared
    lines = [
        f"{result.source} ({result.columns[0]}) and {result.other} ({result.columns[1]})  {count(result.rows_compared)}"
        + (f" · {count(left_out)} without a cluster left out" if left_out else ""),
        f"adjusted Rand index {two_places(result.adjusted_rand)} · adjusted mutual information "
        f"{two_places(result.adjusted_mutual_information)} · {result.agreement:.1%} of rows in matched clusters",
        "",
        *table_lines([header, *rows], left=[0]),
        "",
        f"{count(result.moved)} moved to another cluster",
    ]
    if any(result.unmatched):
        lines.append(f"rows without a match: {result.unmatched[0]:,} and {result.unmatched[1]:,}")
    return "\n".join([*lines, *([] if result.output is None else [f"wrote {result.output} (rows that moved)"])])


@as_text.register
def _(result: results.ExportResult) -> str:
    """The model, the columns that it needs, and the file."""
    return (
        f"{result.model}  {result.estimator} · {count(result.clusters, 'cluster')}\n"
        f"needs {count(len(result.columns), 'column')}: {first_names(result.columns)}\n"
        f"wrote {result.output} ({format_bytes(result.size)})"
    )


@as_text.register
def _(info: TableInfo) -> str:
    """A line for the file, and one for each column."""
    parts = [count(info.rows), count(len(info.columns), "column"), format_bytes(info.size)]
    parts += [f"{count(info.incomplete_rows)} with missing values"] if info.incomplete_rows else []
    parts += [count(info.duplicate_rows, "duplicate row")] if info.duplicate_rows else []
    rows = []
    for column in info.columns:
        comments = [f"skipped: {column.skipped}" if column.skipped else "", ", ".join(column.examples)]
        values = [number(value) for value in (column.least, column.mean, column.most)]
        counts = [f"{column.missing:,}", f"{column.distinct:,}"]
        rows.append([column.name, column.kind, *counts, *values, " · ".join(filter(None, comments))])
    lines = [f"{info.source}  {' · '.join(parts)}", "", *table_lines([COLUMN_HEADER, *rows], left=[0, 1, 7])]
    return "\n".join(lines if info.error is None else [*lines, "", f"coterie fit stops here: {info.error}"])


@as_text.register
def _(info: ModelInfo) -> str:
    """A line for the file, then the estimator and the columns that it expects."""
    parameters = ", ".join(f"{name}={value!r}" for name, value in info.parameters.items())
    lines = [
        f"{info.source}  a fitted model · {format_bytes(info.size)}",
        f"{info.estimator}({parameters}) · {count(info.clusters, 'cluster')}",
    ]
    if info.names is not None:
        lines.append(f"names: {', '.join(f'{label} {name}' for label, name in enumerate(info.names))}")
    if info.columns:
        lines.append(f"expects {count(len(info.columns), 'column')}: {first_names(info.columns)}")
    if info.scale is not None:
        lines.append(f"scaling: {info.scale}")
    if info.fill is not None:
        lines.append(f"missing: filled with the {info.fill} of the training data")
    return "\n".join(lines)


@as_text.register
def _(info: MachineInfo) -> str:
    """Versions, the hardware, the installed packages, and problems."""
    packages = [
        [each.name, each.version or "not installed", each.needed_for, "" if each.version else each.install]
        for each in info.packages
    ]
    lines = [
        f"coterie {info.coterie} · Python {info.python} · {info.platform}",
        f"{count(info.threads, 'thread')} of {count(info.cores, 'core')} · {format_bytes(info.free_memory)} free · "
        f"{info.processor}",
        f"GPU: {info.gpu}",
        f"kernels of the package: {info.kernels}",
        f"kernels compiled here: {info.cache}",
        "",
        *table_lines([["package", "version", "for", ""], *packages], left=[0, 1, 2, 3]),
        "",
        *(info.problems or ("no problems found",)),
    ]
    return "\n".join(lines)


@as_text.register
def _(result: CompiledKernels) -> str:
    """How many kernels are ready, and how many were compiled."""
    return (
        f"{count(result.kernels, 'kernel')} ready; {result.compiled} compiled in {result.seconds:.0f} s\n"
        f"kernels compiled here: {result.cache}"
    )


def preparation_lines(result: results.TableResult) -> list[str]:
    """The table, and how it was prepared."""
    names = [column.name for column in result.skipped]
    note = f" (skipped: {first_names(names)})" if names else ""
    kinds = {"numeric": len(result.columns), "categorical": len(result.categories)}
    used = " and ".join(f"{size:,} {kind}" for kind, size in kinds.items() if size)
    return [
        f"{result.source}  {count(result.rows)} · {count(result.n_columns, 'column')} → using {used}{note}",
        f"scaling: {result.scale} · missing: {result.missing} · seed {result.seed}",
    ]


def _page_lines(result: results.TableResult) -> list[str]:
    """The line about the report, if one was written."""
    if result.report is None:
        return []
    size = "" if result.report_size is None else f", {format_bytes(result.report_size)}"
    return [f"wrote {result.report} (report{size})"]


def _output_line(result: results.JobResult | results.PredictionResult, note: str = "") -> str:
    added = "".join(f", + {name}" for name in result.added)
    return f"wrote {result.output} ({count(result.rows)}{added}{note})"


def fit_line(result: results.JobResult) -> str:
    """The algorithm, its scores and its iterations."""
    parts = [f"{result.title}, k = {result.k:,}", *(f"{name} {number(value)}" for name, value in result.scores.items())]
    if result.iterations is not None:
        state = "converged" if result.converged else "not converged"
        parts.append(f"{state} after {count(result.iterations, 'iteration')}")
    if isinstance(result.options.get("n_init"), int):
        parts.append(f"best of {count(result.options['n_init'], 'restart')}")
    times = {"": result.total_seconds, "fit ": result.seconds}  # what the person waited for comes first
    return " · ".join([*parts, *(f"{what}{time:.2f} s" for what, time in times.items() if time is not None)])


def written_files(result: results.JobResult) -> list[str]:
    """A line for each file that the job wrote."""
    lines = []
    if result.output is not None:
        n_unlabelled = result.rows - result.rows_used
        lines.append(_output_line(result, f"; {count(n_unlabelled)} left without a cluster" if n_unlabelled else ""))
    profiles = f"profiles, {count(len(result.clusters), 'cluster')}"
    files = {"model": result.model, profiles: result.profiles, "animation of the fit": result.animation}
    lines += [f"wrote {path} ({what})" for what, path in files.items() if path is not None]
    return [*lines, *_page_lines(result)]


def cluster_rows(result: results.JobResult) -> list[list[str]]:
    """The cells of the table of clusters, with its header."""
    has_silhouettes = any(cluster.silhouette is not None for cluster in result.clusters)
    share = "share" if result.weight is None else "share of weight"
    rows = [["cluster", "rows", share, *(["silhouette"] if has_silhouettes else []), "stands out by"]]
    for cluster in result.clusters:
        silhouette = [two_places(cluster.silhouette)] if has_silhouettes else []
        separator = ", " if all(trait.share is None for trait in cluster.stands_out_by) else "; "
        traits = separator.join(map(trait_text, cluster.stands_out_by))
        sizes = [f"{cluster.rows:,}", f"{cluster.share:.1%}"]
        rows.append([cluster.display_name, *sizes, *silhouette, traits or without_traits(cluster)])
    if result.noise:
        silhouette = [two_places(None)] if has_silhouettes else []
        rest = 1 - sum(cluster.share for cluster in result.clusters)
        rows.append(["noise", f"{result.noise:,}", f"{rest:.1%}", *silhouette, "rows in no cluster"])
    return rows


def _rule_lines(result: results.JobResult) -> list[str]:
    """The rule of each cluster, if rules were searched."""
    rules = [[cluster.display_name, str(cluster.rule)] for cluster in result.clusters if cluster.rule is not None]
    if not rules:
        return []
    return ["", *table_lines([["cluster", RULE_HEADER], *rules], left=[1])]


def _choice_lines(choice: results.Choice) -> list[str]:
    """A table with a line for each K, the recommended K marked, and the reason."""
    cells = {name: cell for name, cell in CRITERIA.items() if any(cell(row) != "–" for row in choice.table)}
    rows = [
        [f"{row['k']}{MARK if row['recommended'] else ' ' * len(MARK)}", *(cell(row) for cell in cells.values())]
        for row in choice.table
    ]
    is_inertia = choice.clusters_by.endswith("K-means")
    names = ["objective" if name == "inertia" and not is_inertia else name for name in cells]
    sample = f" (from a random sample of {choice.rows_looked_at:,} rows)" if choice.rows_looked_at < choice.rows else ""
    table = table_lines([["K" + " " * len(MARK), *names], *rows])
    return [*table, f"{CHOICE_MARKS[choice.strength]} {choice.heading}: {choice.reason}{sample}"]


def _gap(row: dict[str, Any]) -> str:
    return "–" if row.get("gap") is None else f"{two_places(row['gap'])} ± {row.get('gap_se') or 0.0:.2f}"


CRITERIA: dict[str, Callable[[dict[str, Any]], str]] = {
    "inertia": lambda row: number(row.get("objective")),
    "silhouette": lambda row: two_places(row.get("silhouette")),
    "gap ± se": _gap,
    "BIC": lambda row: number(row.get("bic")),
    "ICL": lambda row: number(row.get("icl")),
    "pred. strength": lambda row: two_places(row.get("prediction_strength")),
    "valleys": lambda row: two_places(row.get("valleys")),
    "stability": lambda row: two_places(row.get("stability")),
    "support": lambda row: two_places(row.get("support")),
}
