"""Python code that gives the result of a report again."""

import codecs
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from coterie.algorithms import algorithm_of, parameters
from coterie.core.formatting import escaped
from coterie.core.protocols import parameters_of
from coterie.data.tables import delimited_text
from coterie.data.tables.frame_table import SampleTable
from coterie.data.tables.read_errors import DATA_FRAME, STANDARD_INPUT
from coterie.data.tables.reader import Table
from coterie.data.tables.sql import is_database
from coterie.data.tables.suffixes import EXCEL, TEXT
from coterie.preparation.fit_preparation import PreparedTable
from coterie.preparation.long_series import SeriesTable
from coterie.report.build.fitted_model import FittedModel
from coterie.report.build.report_source import ReportSource
from coterie.report.html.report import Absent

READERS = {
    ".parquet": "pl.read_parquet", ".arrow": "pl.read_ipc", ".feather": "pl.read_ipc", ".ndjson": "pl.read_ndjson",
    ".jsonl": "pl.read_ndjson", ".xlsx": "pl.read_excel",
}  # fmt: skip
SCALES = {
    "standard": "X = (X - np.{nan}mean(X, axis=0)) / np.{nan}std(X, axis=0)",
    "minmax": "X = (X - np.{nan}min(X, axis=0)) / (np.{nan}max(X, axis=0) - np.{nan}min(X, axis=0))",
    "robust": (
        "low, middle, high = np.{nan}quantile(X, [0.25, 0.5, 0.75], axis=0)\n"
        "X = (X - middle) / np.where(high > low, high - low, np.{nan}std(X, axis=0))"
    ),
}

NUMBERED = (
    "_, first, labels = np.unique(labels, return_index=True, return_inverse=True)",
    "labels = np.argsort(np.argsort(first))[labels]  # clusters are numbered by their first rows",
)


def fit_code(
    source: ReportSource, name: str, k: int | str | None, fit: FittedModel, sample: int | None = None
) -> str | Absent:
    """Code that gives the labels of a fit."""
    prepared = source.prepared
    call = _call(name, k, fit.options, prepared, source.seed)
    lines, rows, weight = [], "X", "weight"
    if sample is not None and sample < prepared.rows.n:
        lines.append(f"rows = np.sort(np.random.default_rng({source.seed}).choice(len(X), {sample}, replace=False))")
        rows, weight = "X[rows]", "weight[rows]"
    weight_argument = f", sample_weight={weight}" if source.weight is not None else ""
    labels = "model.labels_" if rows == "X" else "model.predict(X)"
    numbered = NUMBERED if fit.is_renumbered else ()
    if algorithm_of(name).mixed:
        call = call.replace("coterie.Mixture(", f"coterie.Mixture.from_frame({rows}, ", 1)
        return _code(source, [*lines, f"model = {call[:-1]}{weight_argument})", f"labels = {labels}", *numbered])
    if fit.sweep_ks is not None:
        has_zeros = _has_zero_weights(prepared)
        arguments = _without_zero_weights(rows, weight_argument, has_zeros)
        model = _sweep_call(name, int(k or 0), fit, prepared, *arguments)
        labels = "model.predict(X)" if has_zeros else labels
    else:
        model = f"{call}.fit({rows}{weight_argument})"
    return _code(source, [*lines, f"model = {model}", f"labels = {labels}", *numbered])


def choice_code(
    source: ReportSource, method: str, k: tuple[int, int] | str | int, criteria: tuple[str, ...], budget: str
) -> str | Absent:
    """Code that gives the same choice of K."""
    arguments = [f"budget={budget!r}", f"random_state={source.seed}"]
    if (method != "kmeans" or source.prepared.rows.has_missing) and algorithm_of(method).has_sweep:
        arguments.insert(0, f"estimator={_call(method, 2, parameters(method, {}), source.prepared, source.seed)}")
    if criteria:
        arguments.insert(0, f"criteria={list(criteria)!r}")
    if isinstance(k, tuple):
        arguments.insert(0, f"range({k[0]}, {k[1] + 1})")
    arguments += ["sample_weight=weight"] if source.weight is not None else []
    return _code(source, [f"choice = coterie.choose_k(X, {', '.join(arguments)})", "print(choice)"])


def comparison_code(
    source: ReportSource, runs: Iterable[tuple[str, int]], swept: Mapping[tuple[str, int], FittedModel]
) -> str | Absent:
    """Code that runs every algorithm again; `swept` are fits from the sweep over K."""
    weight = ", sample_weight=weight" if source.weight is not None else ""
    has_zeros = _has_zero_weights(source.prepared)
    models = []
    for name, k in runs:
        if (name, k) in swept:
            arguments = _without_zero_weights("X", weight, has_zeros)
            models.append(_sweep_call(name, k, swept[name, k], source.prepared, *arguments))
        else:
            models.append(f"{_call(name, k, parameters(name, {}), source.prepared, source.seed)}.fit(X{weight})")
    labels = "model.predict(X)" if swept and has_zeros else "model.labels_"
    lines = ["models = [", *(f"    {model}," for model in models), "]", f"labels = [{labels} for model in models]"]
    return _code(source, lines)


def model_code(model: Path, source: ReportSource, names: tuple[str, ...], has_categories: bool) -> str | Absent:
    """Code that gives the labels of a saved model for the rows."""
    table, suffix = source.table, source.table.path.suffix.lower()
    if has_categories or source.reading or suffix not in READERS or _may_have_vectors(table):
        options = [
            word for name, value in source.reading.items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        words = [str(model), str(table.path), *options]
        return Absent(f"coterie predict {shlex.join(words)} writes the same clusters.")
    lines = [
        "import coterie",
        "import polars as pl",
        "",
        f"frame = {READERS[suffix]}({str(table.path)!r})",
        f"model = coterie.load({str(model)!r})",
        f"labels = model.predict(frame[{list(names)!r}])",
    ]
    return "\n".join(lines) + "\n"


def _code(source: ReportSource, last: list[str]) -> str | Absent:
    """Lines that read and prepare the table, and the last lines."""
    table, prepared = source.table, source.prepared
    if table.path == STANDARD_INPUT:
        return Absent("The table came from standard input: save it as a file to have code that reads it.")
    if escaped(table.path) != str(table.path):
        return Absent("The name of the file is not UTF-8: rename it to have code that reads it.")
    if isinstance(table, SampleTable):
        return Absent("Workers of a cluster read the files: use the command, or KMeans(..., engine=...).fit(files).")
    if table.path == DATA_FRAME:
        return Absent("The table is a data frame in memory: save it as a file to have code that reads it.")
    if isinstance(table, SeriesTable):
        return Absent("The series are made from a long table: use the command, or coterie.Job(..., series=...).")
    read_lines, is_text = _read_lines(source)
    is_weighted = source.weight is not None
    if prepared.preparation.mixed:
        drop = [] if prepared.rows.row_mask.all() else ["frame = frame.drop_nulls(columns)"]
        input_lines = [f"columns = {list(prepared.preparation.columns)!r}", *drop, "X = frame[columns]"]
    else:
        input_lines = _matrix_lines(table, prepared, is_text, is_weighted)
    weight_lines = []
    if is_weighted:
        strip = ".str.strip_chars()" if is_text else ""
        weight_lines = [f"weight = frame[{source.weight!r}]{strip}.cast(pl.Float64).to_numpy()"]
    body = [*read_lines, *input_lines, *weight_lines, *last]
    code = "\n".join(body)
    modules = {"coterie": "coterie", "np": "numpy as np", "pl": "polars as pl"}
    imports = [f"import {module}" for name, module in modules.items() if f"{name}." in code]
    if "sweep(" in code:
        imports += ["from coterie.selection import sweep"]
    if "read(Path(" in code:
        imports += ["from pathlib import Path", "from coterie.data.tables.reader import read"]
    if "converted(" in code:
        imports += ["from coterie.data.tables.converted_table import converted"]
        imports += ["from coterie.data.tables.readings import Reading"]
    return "\n".join([*imports, "", *body]) + "\n"


def _read_lines(source: ReportSource) -> tuple[list[str], bool]:
    """Lines that read the table as `frame`, and whether its columns are text."""
    table, preparation = source.table, source.prepared.preparation
    path, suffix = repr(str(table.path)), table.path.suffix.lower()
    options = "".join(f", {name}={value!r}" for name, value in source.reading.items())
    is_encoded = bool(preparation.categories) and not preparation.mixed and suffix in (*TEXT, *EXCEL)
    text = f".with_text({list(preparation.categories)!r})" if is_encoded else ""
    if preparation.readings:
        readings = {name: reading.as_dict() for name, reading in preparation.readings.items()}
        return [
            f"readings = {readings!r}",
            "readings = {name: Reading.from_dict(reading) for name, reading in readings.items()}",
            f"frame = converted(read(Path({path}){options}){text}, readings).frame()",
        ], False
    if options or is_database(table.path):
        return [f"frame = read(Path({path}){options}){text}.frame()"], False
    if suffix == ".npy":
        return [f"X = np.load({path})", 'frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])])'], False
    if suffix in READERS and not _may_have_vectors(table):
        return [f"frame = {READERS[suffix]}({path})"], False
    if suffix in TEXT and not preparation.mixed and _is_plain(table):
        separator = delimited_text.detect_layout(table.path).separator
        argument = "" if separator == "," else f", separator={separator!r}"
        return [f"frame = pl.read_csv({path}{argument}, infer_schema=False)"], True
    return [f"frame = read(Path({path})){text}.frame()"], False


def _may_have_vectors(table: Table) -> bool:
    """Whether columns may be elements of lists (``vector_0``), which Polars does not split."""
    return any(name.endswith("_0") for name in table.columns)


def _is_plain(table: Table) -> bool:
    """Whether Polars reads a text file without options: UTF-8, a header, and decimal points."""
    with table.path.open("rb") as file:
        has_mark = file.read(3) == codecs.BOM_UTF8
    layout = delimited_text.detect_layout(table.path)
    is_utf8 = delimited_text.detect_encoding(table.path) == delimited_text.UTF_8
    if has_mark or not is_utf8 or not layout.header or layout.blank:
        return False
    numbers = [name for name, dtype in table.schema.items() if dtype.is_numeric()]
    has_comma = pl.any_horizontal(pl.all().str.contains(",", literal=True).any())
    return not numbers or not any(batch.select(has_comma).item() for batch in table.raw_batches(numbers))


def _matrix_lines(table: Table, prepared: PreparedTable, is_text: bool, is_weighted: bool) -> list[str]:
    """Lines that compute the matrix `X` from `frame`, of the rows that are used."""
    preparation = prepared.preparation
    lines = []
    dtype = "np.float32" if preparation.single else "np.float64"
    if preparation.numbers:
        cast = f"pl.Float{32 if preparation.single else 64}"
        convert = (
            f".with_columns(pl.all().str.strip_chars().cast({cast}, strict=False))" if is_text else f".cast({cast})"
        )
        is_all = list(preparation.numbers) == table.columns and not preparation.readings
        names = "frame.columns" if is_all else repr(list(preparation.numbers))
        lines += [f"columns = {names}", f"X = frame[columns]{convert}.to_numpy(order='c')"]
    else:
        lines.append("X = np.empty((len(frame), 0))")
    if not prepared.rows.row_mask.all():
        is_null = "".join(f" | frame[{name!r}].is_null().to_numpy()" for name in preparation.categories)
        is_missing = f"(np.isnan(X).any(axis=1){is_null})" if is_null else "np.isnan(X).any(axis=1)"
        lines.append(f"complete = ~{is_missing}")
        needs_frame = is_null or is_weighted
        lines.append("X, frame = X[complete], frame.filter(complete)" if needs_frame else "X = X[complete]")
    transforms = [f"X[:, {j}] = np.{name}(X[:, {j}])" for j, name in preparation.transformed.items()]
    transforms = ["X = X.copy()", *transforms] if transforms else []
    if is_weighted:  # the fill values are those of transformed columns
        lines += transforms
    if preparation.fill:
        fill = repr(list(preparation.fill)) if is_weighted else f"np.nan{preparation.missing}(X, axis=0)"
        lines.append(f"X = np.where(np.isnan(X), {fill}, X)")
    if not is_weighted:
        lines += transforms
    if preparation.scale in SCALES and preparation.numbers:
        lines += ["X = X.astype(np.float64)"] if preparation.single else []
        shift, spread = list(preparation.shift), list(preparation.spread)
        nan = "nan" if preparation.missing == "ignore" or preparation.series else ""
        lines.append(
            f"X = (X - {shift!r}) / {spread!r}  # of weighted rows"
            if is_weighted
            else SCALES[preparation.scale].format(nan=nan)
        )
        lines += [f"X = X.astype({dtype})"] if preparation.single else []
    if preparation.categories:
        lines.append(f"categories = {preparation.categories!r}")
        indicator = "(frame[name].cast(pl.String) == value).fill_null(False)"
        lines.append(f"one_hot = [{indicator} for name, values in categories.items() for value in values]")
        lines.append(f"X = np.column_stack([X, *one_hot]).astype({dtype})")
    return lines


def _has_zero_weights(prepared: PreparedTable) -> bool:
    """Whether there are rows of weight 0, which criteria ignore."""
    return prepared.weight is not None and not bool(prepared.weight.all())


def _without_zero_weights(rows: str, weight_argument: str, has_zeros: bool) -> tuple[str, str]:
    """Code for the rows of positive weight, and for their weights."""
    if not has_zeros:
        return rows, weight_argument
    weight = weight_argument.partition("=")[2]
    return f"{rows}[{weight} > 0]", f", sample_weight={weight}[{weight} > 0]"


def _sweep_call(name: str, k: int, fit: FittedModel, prepared: PreparedTable, rows: str, weight_argument: str) -> str:
    """Code for the fit with `k` clusters of a sweep, in which fits start from the centers of their neighbours."""
    seed = parameters_of(fit.model).get("random_state", 0)
    call = _call(name, None, fit.options, prepared, seed)
    return f"sweep({call}, {rows}, {list(fit.sweep_ks or ())}{weight_argument}).model({k})"


def _call(name: str, k: int | str | None, options: dict[str, Any], prepared: PreparedTable, seed: int) -> str:
    """The constructor of the estimator with its parameters."""
    method = algorithm_of(name)
    arguments = {**({} if k is None else {method.k_parameter: k}), **options}
    known = method.build(**arguments).get_params(deep=False)
    if "random_state" in known:
        arguments["random_state"] = seed
    ignore = prepared.preparation.missing == "ignore"
    if "missing" in known and (method.mixed or ignore):
        arguments["missing"] = "ignore" if ignore else "error"
    return f"coterie.{method.class_name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
