"""Information about a file or about this machine as plain text for a terminal."""

from coterie.report.inspection import ColumnInfo, MachineInfo, ModelInfo, TableInfo
from coterie.report.text.layout import columns, count, first_names, in_bytes, number

HEADER = ["column", "kind", "missing", "distinct", "min", "mean", "max", ""]


def table_text(info: TableInfo) -> str:
    """A line for the file, and one for each column."""
    parts = [count(info.rows, "row"), count(len(info.columns), "column"), in_bytes(info.size)]
    if info.incomplete_rows:
        parts.append(f"{count(info.incomplete_rows, 'row')} with missing values")
    if info.duplicate_rows:
        parts.append(count(info.duplicate_rows, "duplicate row"))
    lines = columns([HEADER, *(_column(column) for column in info.columns)], left=[0, 1, 7])
    return "\n".join([f"{info.source}  {' · '.join(parts)}", "", *lines])


def _column(column: ColumnInfo) -> list[str]:
    numbers = [number(value) for value in (column.least, column.mean, column.most)]
    reason = f"skipped: {column.skipped}" if column.skipped else ""
    examples = ", ".join(column.examples)
    return [
        column.name,
        column.kind,
        f"{column.missing:,}",
        f"{column.distinct:,}",
        *numbers,
        " · ".join(part for part in (reason, examples) if part),
    ]


def model_text(info: ModelInfo) -> str:
    """A line for the file, then the estimator and the columns that it expects."""
    parameters = ", ".join(f"{name}={value!r}" for name, value in info.parameters.items())
    lines = [
        f"{info.source}  a fitted model · {in_bytes(info.size)}",
        f"{info.estimator}({parameters}) · {count(info.clusters, 'cluster')}",
    ]
    if info.columns:
        lines.append(f"expects {count(len(info.columns), 'column')}: {first_names(info.columns)}")
    if info.scale is not None:
        lines.append(f"scaling: {info.scale}")
    if info.fill is not None:
        lines.append(f"missing: filled with the {info.fill} of the training data")
    return "\n".join(lines)


def machine_text(info: MachineInfo) -> str:
    """Versions, the hardware, the installed packages, and problems."""
    packages = [
        [
            package.name,
            package.version or "not installed",
            package.needed_for,
            "" if package.version else package.install,
        ]
        for package in info.packages
    ]
    lines = [
        f"coterie {info.coterie} · Python {info.python} · {info.platform}",
        f"{count(info.threads, 'thread')} of {count(info.cores, 'core')} · {in_bytes(info.free_memory)} free · "
        f"{info.processor}",
        f"compiled kernels: {info.cache}",
        "",
        *columns([["package", "version", "for", ""], *packages], left=[0, 1, 2, 3]),
        "",
        *(info.problems or ("no problems found",)),
    ]
    return "\n".join(lines)
