"""How to have the same again: Python code, a command line, a fingerprint of the data, versions."""

import codecs
import hashlib
import platform
import shlex
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

import polars as pl

import coterie
from coterie.algorithms import method_of, parameters
from coterie.data.tables import delimited_text as text_files
from coterie.data.tables import file_formats as formats
from coterie.data.tables.reader import Table
from coterie.data.tables.scan import TEXT
from coterie.jobs import ChooseJob, CompareJob, Job, ReportJob, TableJob
from coterie.jobs.fitting import Fit
from coterie.preparation.fit_preparation import Prepared
from coterie.preparation.name_lists import joined
from coterie.report.html.report import Absent
from coterie.report.text.layout import count

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "polars")
READERS = {
    ".parquet": "pl.read_parquet({path})",
    ".arrow": "pl.read_ipc({path})",
    ".feather": "pl.read_ipc({path})",
    ".ndjson": "pl.read_ndjson({path})",
    ".jsonl": "pl.read_ndjson({path})",
    ".xlsx": "pl.read_excel({path})",
}
SCALES = {
    "standard": "X = (X - np.{nan}mean(X, axis=0)) / np.{nan}std(X, axis=0)",
    "minmax": "X = (X - np.{nan}min(X, axis=0)) / (np.{nan}max(X, axis=0) - np.{nan}min(X, axis=0))",
    "robust": (
        "low, middle, high = np.{nan}quantile(X, [0.25, 0.5, 0.75], axis=0)\n"
        "X = (X - middle) / np.where(high > low, high - low, np.{nan}std(X, axis=0))"
    ),
}


def fingerprint(source: Table) -> str:
    """Rows, columns and SHA-256 of the file, or of the table where there is no file."""
    if source.path == formats.STANDARD_INPUT:
        digest, what = _digest_of_rows(source), "SHA-256 of the table as CSV"
    else:
        with source.path.open("rb") as file:
            digest, what = hashlib.file_digest(file, "sha256").hexdigest(), "SHA-256 of the file"
    return f"{source.name}: {count(source.rows, 'row')}, {count(source.width, 'column')}; {what} {digest}"


def _digest_of_rows(source: Table) -> str:
    digest = hashlib.sha256()
    for i, frame in enumerate(source.written()):
        digest.update(frame.write_csv(include_header=i == 0).encode())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    found = {"coterie": coterie.__version__, "Python": platform.python_version()}
    return found | {name: version(name) for name in PACKAGES}


def command_line(job: TableJob) -> str:
    """The command that runs `job`; files that it wrote are left out."""
    words = ["coterie", _verb(job), str(job.path)]
    if isinstance(job, Job | ChooseJob):
        words += ["-k", _number(job.k), "-a", job.method]
    if isinstance(job, CompareJob):
        words += ["-k", _number(job.k), *(word for name in job.methods for word in ("-a", name))]
    if isinstance(job, ReportJob):
        words += ["--model", str(job.model)] if job.model is not None else ["--labels", str(job.labels)]
    if isinstance(job, ChooseJob) and job.criteria:
        words += ["--methods", ",".join(job.criteria)]
    if isinstance(job, Job):
        words += [part for name, value in job.options.items() for part in (_option(name), str(value))]
        words += ["--sample", str(job.sample)] if job.sample is not None else []
        words += ["--engine", job.engine] if job.engine != "local" else []
    if isinstance(job, Job | ChooseJob) and job.budget != "normal":
        words += ["--budget", job.budget]
    return shlex.join([*words, *_of_table(job)])


def fit_code(job: Job, source: Table, prepared: Prepared, k: int | str, fit: Fit) -> str | Absent:
    """Code that gives the labels of the fit."""
    return _code(source, prepared, job, _fit_lines(job, prepared, k, fit))


def choice_code(job: ChooseJob, source: Table, prepared: Prepared) -> str | Absent:
    """Code that gives the same choice."""
    told = [f"budget={job.budget!r}", f"random_state={job.seed}"]
    if job.method != "kmeans" and method_of(job.method).swept:
        told.insert(0, f"estimator={_call(job.method, 2, parameters(job.method, {}), prepared, job.seed)}")
    if job.criteria:
        told.insert(0, repr(list(job.criteria)))
    if isinstance(job.k, tuple):
        told.insert(0, f"range({job.k[0]}, {job.k[1] + 1})")
    elif job.criteria:
        told.insert(0, "'auto'")
    told += ["sample_weight=weight"] if job.weight is not None else []
    lines = [f"found = coterie.choose_k(X, {', '.join(told)})", "print(found)"]
    return _code(source, prepared, job, lines)


def comparison_code(
    job: CompareJob,
    source: Table,
    prepared: Prepared,
    runs: Iterable[tuple[str, int]],
    swept: Mapping[tuple[str, int], Fit],
) -> str | Absent:
    """Code that runs every algorithm again; `swept` are fits that were made while K was chosen."""
    weight = ", sample_weight=weight" if job.weight is not None else ""
    zeros = _has_zeros(prepared)
    models = []
    for name, k in runs:
        if (name, k) in swept:
            models.append(_sweep_call(name, k, swept[name, k], prepared, *_counted("X", weight, zeros)))
        else:
            models.append(f"{_call(name, k, parameters(name, {}), prepared, job.seed)}.fit(X{weight})")
    labels = "model.predict(X)" if swept and zeros else "model.labels_"
    lines = ["models = [", *(f"    {model}," for model in models), "]", f"labels = [{labels} for model in models]"]
    return _code(source, prepared, job, lines)


def _verb(job: TableJob) -> str:
    return {Job: "fit", ChooseJob: "choose-k", CompareJob: "compare", ReportJob: "report"}[type(job)]


def _number(k: Any) -> str:
    return f"{k[0]}:{k[1]}" if isinstance(k, tuple) else str(k)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _of_table(job: TableJob) -> list[str]:
    words = []
    for name in ("columns", "exclude", "one_hot"):
        if getattr(job, name):
            words += [_option(name), joined(getattr(job, name))]
    for name, usual in {"id": None, "weight": None, "scale": "auto", "missing": "error"}.items():
        if getattr(job, name) != usual:
            words += [_option(name), str(getattr(job, name))]
    return [*words, "--seed", str(job.seed)]


def _code(source: Table, prepared: Prepared, job: TableJob, last: list[str]) -> str | Absent:
    """Lines that read and prepare the table, and the last ones."""
    if source.path == formats.STANDARD_INPUT:
        return Absent("The table came from standard input: save it as a file to have code that reads it.")
    reading, text = _reading(source, prepared)
    making = (
        _frame_lines(prepared)
        if prepared.preparation.mixed
        else _matrix_lines(source, prepared, text, job.weight is not None)
    )
    weighing = [] if job.weight is None else _weight_lines(job.weight, text)
    body = [*reading, *making, *weighing, *last]
    used = "\n".join(body)
    imports = [f"import {name}" for name in ("coterie", "numpy as np", "polars as pl") if _uses(used, name)]
    if "sweep(" in used:
        imports += ["from coterie.selection import sweep"]
    if "table.read(" in used:
        imports += ["from pathlib import Path", "from coterie.data.tables import reader as table"]
    return "\n".join([*imports, "", *body]) + "\n"


def _uses(code: str, module: str) -> bool:
    return f"{module.split()[-1]}." in code


def _reading(source: Table, prepared: Prepared) -> tuple[list[str], bool]:
    """Lines that read the table as `frame`, and whether its columns are text still."""
    path, suffix = repr(str(source.path)), source.path.suffix.lower()
    if suffix == ".npy":
        return [f"X = np.load({path})", 'frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])])'], False
    if suffix in READERS and not _may_have_vectors(source):
        return [f"frame = {READERS[suffix].format(path=path)}"], False
    if suffix in TEXT and not prepared.preparation.mixed and _is_plain(source):
        separator = text_files.layout(source.path).separator
        told = "" if separator == "," else f", separator={separator!r}"
        return [f"frame = pl.read_csv({path}{told}, infer_schema=False)"], True
    return [f"frame = table.read(Path({path})).frame()"], False


def _may_have_vectors(source: Table) -> bool:
    """Whether columns may have been made of lists, ``vector_0`` and so on, which Polars leaves as they are."""
    return any(name.endswith("_0") for name in source.columns)


def _is_plain(source: Table) -> bool:
    """Whether a file of text is UTF-8 with points before decimals and names of columns, which Polars reads as it is."""
    with source.path.open("rb") as file:
        marked = file.read(3) == codecs.BOM_UTF8
    layout = text_files.layout(source.path)
    if marked or text_files.encoding(source.path) != text_files.UTF_8 or not layout.header or layout.blank:
        return False
    numbers = [name for name, kind in source.schema.items() if kind.is_numeric()]
    commas = pl.any_horizontal(pl.all().str.contains(",", literal=True).any())
    return not numbers or not any(frame.select(commas).item() for frame in source.written(numbers))


def _matrix_lines(source: Table, prepared: Prepared, text: bool, weighed: bool) -> list[str]:
    """Lines that make the matrix `X` of `frame`, of the rows that take part."""
    how, lines = prepared.preparation, []
    kind = "np.float32" if how.single else "np.float64"
    if how.numbers:
        cast = f"pl.Float{32 if how.single else 64}"
        read = f".with_columns(pl.all().str.strip_chars().cast({cast}, strict=False))" if text else f".cast({cast})"
        named = "frame.columns" if list(how.numbers) == source.columns else repr(list(how.numbers))
        lines += [f"columns = {named}", f"X = frame[columns]{read}.to_numpy(order='c')"]
    else:
        lines.append("X = np.empty((len(frame), 0))")
    if not prepared.rows.kept.all():
        holes = "".join(f" | frame[{name!r}].is_null().to_numpy()" for name in how.categories)
        lines.append(f"kept = ~(np.isnan(X).any(axis=1){holes})" if holes else "kept = ~np.isnan(X).any(axis=1)")
        lines.append("X, frame = X[kept], frame.filter(kept)" if holes or weighed else "X = X[kept]")
    holes_left = how.missing == "ignore" or how.series
    if how.fill:
        middle = repr(list(how.fill)) if weighed else f"np.nan{how.missing}(X, axis=0)"
        lines.append(f"X = np.where(np.isnan(X), {middle}, X)")
    if how.scale in SCALES and how.numbers:
        lines += ["X = X.astype(np.float64)"] if how.single else []
        learned = f"X = (X - {list(how.shift)!r}) / {list(how.spread)!r}  # of weighted rows"
        lines.append(learned if weighed else SCALES[how.scale].format(nan="nan" if holes_left else ""))
        lines += [f"X = X.astype({kind})"] if how.single else []
    if how.categories:
        lines.append(f"categories = {how.categories!r}")
        one = "(frame[name].cast(pl.String) == value).fill_null(False)"
        lines.append(f"shown = [{one} for name, values in categories.items() for value in values]")
        lines.append(f"X = np.column_stack([X, *shown]).astype({kind})")
    return lines


def _frame_lines(prepared: Prepared) -> list[str]:
    """Lines that make of `frame` the one that a mixture takes."""
    how = prepared.preparation
    names = [*how.numbers, *how.categories]
    dropped = [] if prepared.rows.kept.all() else ["frame = frame.drop_nulls(columns)"]
    return [f"columns = {names!r}", *dropped, "X = frame[columns]"]


def _weight_lines(name: str, text: bool) -> list[str]:
    read = ".str.strip_chars()" if text else ""
    return [f"weight = frame[{name!r}]{read}.cast(pl.Float64).to_numpy()"]


def _fit_lines(job: Job, prepared: Prepared, k: int | str, fit: Fit) -> list[str]:
    call = _call(job.method, k, fit.options, prepared, job.seed)
    lines, rows, weight = [], "X", "weight"
    if job.sample is not None and job.sample < prepared.rows.n:
        lines.append(f"rows = np.sort(np.random.default_rng({job.seed}).choice(len(X), {job.sample}, replace=False))")
        rows, weight = "X[rows]", "weight[rows]"
    weighing = f", sample_weight={weight}" if job.weight is not None else ""
    labels = "model.labels_" if rows == "X" else "model.predict(X)"
    if method_of(job.method).mixed:
        call = call.replace("coterie.Mixture(", f"coterie.Mixture.from_frame({rows}, ", 1)
        return [*lines, f"model = {call[:-1]}{weighing})", f"labels = {labels}"]
    if fit.sweep_ks is not None:
        zeros = _has_zeros(prepared)
        model = _sweep_call(job.method, int(k), fit, prepared, *_counted(rows, weighing, zeros))
        return [*lines, f"model = {model}", f"labels = {'model.predict(X)' if zeros else labels}"]
    return [*lines, f"model = {call}.fit({rows}{weighing})", f"labels = {labels}"]


def _has_zeros(prepared: Prepared) -> bool:
    """Whether there are rows of weight 0, of which the criteria take no notice."""
    return prepared.weight is not None and not bool(prepared.weight.all())


def _counted(rows: str, weighing: str, zeros: bool) -> tuple[str, str]:
    """Code for the rows that count, and for their weights."""
    if not zeros:
        return rows, weighing
    weight = weighing.partition("=")[2]
    return f"{rows}[{weight} > 0]", f", sample_weight={weight}[{weight} > 0]"


def _sweep_call(name: str, k: int, fit: Fit, prepared: Prepared, rows: str, weighing: str) -> str:
    """Code for the fit with `k` clusters among those with other numbers, each of which begins with its neighbours."""
    seed = getattr(fit.model, "random_state", 0)
    call = _call(name, None, fit.options, prepared, seed)
    return f"sweep({call}, {list(fit.sweep_ks or ())}, {rows}{weighing}).model({k})"


def _call(name: str, k: int | str | None, options: dict[str, Any], prepared: Prepared, seed: int) -> str:
    """The constructor of the estimator with all that it was told."""
    method = method_of(name)
    told = {**({} if k is None else {method.number: k}), **options}
    known = method.made(**told).get_params(deep=False)
    if "random_state" in known:
        told["random_state"] = seed
    if "missing" in known and (method.mixed or prepared.preparation.missing == "ignore"):
        told["missing"] = "ignore" if prepared.preparation.missing == "ignore" else "error"
    return f"coterie.{method.estimator}({', '.join(f'{key}={value!r}' for key, value in told.items())})"


def model_code(job: ReportJob, source: Table, names: tuple[str, ...], categories: bool) -> str | Absent:
    """Code that gives the labels a saved model has for the rows."""
    if categories or source.path.suffix.lower() not in READERS or _may_have_vectors(source):
        return Absent(f"coterie predict {shlex.join([str(job.model), str(job.path)])} writes the same clusters.")
    reader = READERS[source.path.suffix.lower()].format(path=repr(str(source.path)))
    lines = [
        "import coterie",
        "import polars as pl",
        "",
        f"frame = {reader}",
        f"model = coterie.load({str(job.model)!r})",
    ]
    return "\n".join([*lines, f"labels = model.predict(frame[{list(names)!r}])"]) + "\n"
