"""Public names of the library, which of them have laws, and which law a case number stands for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import numpy as np

import coterie
from fuzz.law import LAWS, Law

PACKAGES = (
    "data", "datasets", "diagnosis", "distances", "engines", "explanation", "families", "hierarchy", "jobs",
    "kmeans", "medoids", "metrics", "mixture", "persistence", "plots", "seeding", "selection", "traces", "web",
)  # fmt: skip

RESULT = "a result, checked with the function that returns it"
TYPE = "a type of an option, checked with the job that takes it"
NOT_COVERED: dict[str, str] = {  # names, or packages as a whole
    "__version__": "text",
    "plots": "figures, compared with stored pictures in tests/plots",
    "web": "parts of pages, tested in a browser in tests/web",
    "kmeans.k_means": "KMeans as a function, compared with it in tests/kmeans",
    "kmeans.kmeans_plusplus": "the first step of KMeans, tested in tests/kmeans",
    "jobs.report": "writes pages, tested in a browser in tests/report",
    "jobs.ReportJob": "options of jobs.report",
    "jobs.compare_labels": "metrics of two columns, compared with them in tests/cli",
    "Job": "made by the command line, which the laws of jobs call",
    "make_report": "the page of jobs.report, compared with it in tests/jobs",
    "jobs.ExportJob": "options of export, which has a law",
    "data.FileSource": "compared with rows in memory in tests/data",
    "data.scan_files": "makes a data.FileSource",
    "engines.released_on_error": "tested with clusters that fail in tests/engines",
    "jobs.examine": "says what the machine has, not what a table has",
    **{
        f"jobs.{name}": TYPE
        for name in ("Budget", "Dates", "DecimalMark", "Device", "Dialect", "ExportFormat", "MapKind", "Missing",
                     "ModelMissing", "Number", "Scale")
    },
    **{
        f"jobs.{name}": "made by the command line, which the laws of jobs call"
        for name in ("ChooseJob", "CompareJob", "CompareLabelsJob", "PredictJob", "Progress", "TableJob")
    },
    **{f"diagnosis.{name}": RESULT for name in ("Check", "Diagnosis", "Finding")},
    **{f"explanation.{name}": RESULT for name in ("Condition", "Explanation", "Rule")},
    **{
        f"selection.{name}": RESULT
        for name in ("ChooseK", "Curve", "Decision", "DendrogramGap", "Gap", "Knee", "MixtureTable", "Progress",
                     "Split", "Splitting", "Stability", "Sweep", "Tendency", "Valleys", "Vote")
    },
    "datasets.GaussianTruth": RESULT,
    "seeding.greedy": "used by the methods, which have laws",
    "seeding.greedy_rows": "used by the methods, which have laws",
    "seeding.runs_on_all_rows": "a choice between methods, which have laws",
    "traces.Recording": RESULT,
    "traces.Step": RESULT,
    "traces.Trace": RESULT,
}  # fmt: skip


def load(module: str = "fuzz.laws") -> None:
    """Register the laws of a module: those of the library, or others that take their place."""
    import_module(module)


def public_names() -> list[str]:
    """All public names: those of coterie as they are, those of its packages after the name of the package."""
    names = list(coterie.__all__)
    for package in PACKAGES:
        listed = import_module(f"coterie.{package}").__all__
        names += [f"{package}.{name}" for name in listed if name not in coterie.__all__]
    return names


def covered() -> set[str]:
    """Names that are the subject of a law."""
    return {subject for each in LAWS for subject in each.subjects}


def unexplained() -> list[str]:
    """Public names that neither have a law nor a reason why not."""
    known = covered() | NOT_COVERED.keys()
    return [name for name in public_names() if name not in known and name.partition(".")[0] not in NOT_COVERED]


@cache
def pairs() -> tuple[tuple[Law, str], ...]:
    """Every law with every subject, as often as one round of cases has it."""
    return tuple((each, subject) for each in LAWS for subject in each.subjects for _ in range(each.weight))


def law_of(seed: int, number: int) -> tuple[Law, str]:
    """The law and the subject of a case. Each round of cases has all of them, in an order of its own."""
    rounds, place = divmod(number, len(pairs()))
    return pairs()[_order(seed, rounds)[place]]


@cache
def _order(seed: int, rounds: int) -> list[int]:
    return np.random.default_rng([seed, rounds]).permutation(len(pairs())).tolist()
