"""Small tables in files, with all that makes descriptions go wrong, and how to read them without coterie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

Read = Callable[[pd.Series], pd.Series]  # the texts of a column as values: numbers, dates, or text for categories


@dataclass(frozen=True)
class Case:
    """A table as it is written to a file, and the options of the job that clusters it."""

    frame: pd.DataFrame  # the cells of the file
    options: Mapping[str, Any]  # of the job
    kinds: Mapping[str, str] = field(default_factory=dict)  # by column: how its texts are read, see `READERS`
    suffix: str = ".csv"

    def write(self, folder: Path) -> Path:
        path = folder / f"table{self.suffix}"
        if self.suffix == ".csv":
            self.frame.to_csv(path, index=False)
        else:
            self.frame.to_excel(path, index=False, engine="xlsxwriter")
        return path


def read_values(path: Path, kinds: Mapping[str, str]) -> pd.DataFrame:
    """The table in the file, with the columns in `kinds` as numbers and dates."""
    frame = pd.read_csv(path) if path.suffix == ".csv" else read_workbook(path)
    for name, kind in kinds.items():
        frame[name] = READERS[kind](frame[name])
    return frame


def read_workbook(path: Path) -> pd.DataFrame:
    sheet = pytest.importorskip("fastexcel").read_excel(path).load_sheet(0)
    frame: pd.DataFrame = sheet.to_pandas()
    return frame


def _amounts(texts: pd.Series) -> pd.Series:
    return pd.to_numeric(texts.str.replace(r"[^\d.\-]", "", regex=True))


READERS: dict[str, Read] = {
    "yes/no": lambda texts: texts.map({"yes": 1.0, "no": 0.0}),
    "amount": _amounts,
    "decimal comma": lambda texts: pd.to_numeric(texts.str.replace(".", "").str.replace(",", ".")),
    "percent": lambda texts: pd.to_numeric(texts.str.rstrip("%")),
    "date": pd.to_datetime,
    "day first": lambda texts: pd.to_datetime(texts, format="%d.%m.%Y"),
    "category": lambda texts: texts.map(str, na_action="ignore"),
}


def with_gaps(values: Any, share: float, seed: int) -> np.ndarray:
    """The values, of which about this share is missing."""
    values = np.array(values, dtype=object)
    values[np.random.default_rng(seed).random(len(values)) < share] = None
    return values


def groups(n: int, k: int = 3) -> tuple[np.random.Generator, np.ndarray]:
    return np.random.default_rng(n), np.arange(n) % k


def measures(n: int = 60, k: int = 3, d: int = 2) -> pd.DataFrame:
    rng, group = groups(n, k)
    return pd.DataFrame({f"m{j}": (rng.normal(5.0 * ((group + j) % k), 1.0)).round(2) for j in range(d)})


def customers(n: int = 90) -> pd.DataFrame:
    rng, group = groups(n)
    return pd.DataFrame({
        "customer_id": np.arange(1000, 1000 + n),
        "revenue": np.exp(rng.normal(7 + 2 * group, 1.3)).round(2),
        "employees": with_gaps((8 + 12 * group + rng.normal(size=n)).round(), 0.3, 1),
        "newsletter": with_gaps(np.where(rng.random(n) < 0.2 + 0.3 * group, "yes", "no"), 0.3, 2),
        "plan": with_gaps(np.array(["basic", "pro", "team"])[(group + (rng.random(n) < 0.2)) % 3], 0.15, 3),
        "fax": with_gaps(rng.normal(size=n).round(2), 0.95, 4),
        "w": rng.integers(0, 4, n),
    })  # fmt: skip


def _missing(table: pd.DataFrame, share: float = 0.2) -> pd.DataFrame:
    return table.apply(lambda column: with_gaps(column, share, len(column.name)))


def cases() -> dict[str, Case]:
    """All tables by name."""
    rng, group = groups(80)
    days = pd.Timestamp("2024-06-30") - pd.to_timedelta(rng.integers(0, 100, 80) + 200 * group, unit="D")
    skewed = np.exp(rng.normal(4 + group, 1.5))
    one_hot = pd.get_dummies(pd.Series(np.array(["a", "b", "c"])[group])).astype(int)
    plain, crm, median = measures(), customers(), {"missing": "median"}
    yes_no = {"newsletter": "yes/no"}
    share = [f"{value:.1f}%" for value in 20 * group + 9]
    result = {
        "plain": Case(plain, {}),
        "one cluster": Case(plain, {"k": 1}),
        "two clusters": Case(measures(41, 2, 1), {"k": 2}),
        "many clusters": Case(measures(80, 4), {"k": 8}),
        "missing, median": Case(_missing(plain), median),
        "missing, mean": Case(_missing(plain), {"missing": "mean"}),
        "missing, drop": Case(_missing(plain), {"missing": "drop"}),
        "missing, ignore": Case(_missing(plain).assign(full=rng.normal(size=60).round(2)), {"missing": "ignore"}),
        "much missing": Case(_missing(measures(120), 0.45), median),
        "mostly missing": Case(plain.assign(rare=with_gaps(plain["m0"] * 2 + 1, 0.7, 0)), {}),
        "mostly missing, included": Case(
            plain.assign(rare=with_gaps(rng.normal(size=60).round(2), 0.7, 0)), {**median, "include": ("rare",)}
        ),
        "customers": Case(crm, {**median, "one_hot": ("plan",)}, yes_no),
        "customers, weighted": Case(crm, {**median, "one_hot": ("plan",), "weight": "w"}, yes_no),
        "customers, mean, XLSX": Case(crm, {"missing": "mean", "weight": "w"}, yes_no, ".xlsx"),
        "customers, dropped": Case(crm, {"missing": "drop", "one_hot": ("plan",)}, yes_no),
        "customers, named": Case(crm, {**median, "names": ("small", "middle", "large")}, yes_no),
        "skewed, even": Case(pd.DataFrame({"amount": skewed.round(2), "m": rng.normal(5 * group).round(2)}), {}),
        "skewed, zeros": Case(pd.DataFrame({"visits": np.floor(skewed), "m": rng.normal(5 * group).round(2)}), {}),
        "skewed, weighted": Case(
            pd.DataFrame({"amount": with_gaps(skewed.round(2), 0.1, 5), "m": rng.normal(5 * group).round(2),
                          "w": rng.integers(1, 5, 80)}), {**median, "weight": "w"}
        ),
        "skewed, root": Case(pd.DataFrame({"amount": skewed.round(2), "m": group + rng.random(80).round(3)}),
                             {"transform": ("sqrt:amount",)}),
        "weights": Case(plain.assign(w=np.arange(60) % 5), {"weight": "w"}),
        "dates": Case(pd.DataFrame({"ordered": days.strftime("%Y-%m-%d"), "m": rng.normal(size=80).round(2)}), {},
                      {"ordered": "date"}),
        "dates, missing": Case(
            pd.DataFrame({"ordered": with_gaps(days.strftime("%d.%m.%Y"), 0.2, 6), "m": rng.normal(size=80).round(2)}),
            median, {"ordered": "day first"},
        ),
        "dates, XLSX": Case(pd.DataFrame({"ordered": days, "m": rng.normal(group).round(2)}), {},
                            {"ordered": "date"}, ".xlsx"),
        "one-hot by hand": Case(pd.concat([one_hot, pd.DataFrame({"m": rng.normal(group).round(3)})], axis=1), {}),
        "negative": Case(-1e6 + 1e3 * measures(62), {}),
        "huge and tiny": Case(measures(60) * [1e9, 1e-9], {}),
        "duplicates": Case(pd.concat([plain[:12]] * 5, ignore_index=True), {}),
        "constant": Case(plain.assign(same=7, empty=None), {}),
        "amounts": Case(
            pd.DataFrame({"price": [f"${value:,.2f}" for value in skewed * 10], "share": share}),
            {"scale": "standard", "transform": ("none:price",)}, {"price": "amount", "share": "percent"},
        ),
        "decimal comma": Case(
            pd.DataFrame({"x": [f"{v:.3f}".replace(".", ",") for v in rng.normal(5 * group)],
                          "y": [f"{v:.1f}".replace(".", ",") for v in rng.normal(group)]}), {},
            {"x": "decimal comma", "y": "decimal comma"},
        ),
        "min-max": Case(_missing(plain), {**median, "scale": "minmax"}),
        "robust": Case(plain, {"scale": "robust"}),
        "unscaled, XLSX": Case(
            _missing(plain).assign(full=np.arange(60) % 7), {**median, "scale": "none"}, suffix=".xlsx"
        ),
        "noise": Case(
            pd.concat([measures(60), pd.DataFrame(rng.uniform(-9, 20, (12, 2)).round(2), columns=["m0", "m1"])]),
            {"k": "auto", "algorithm": "dbscan", "options": {"eps": 0.5, "min_samples": 4}},
        ),
        "mixture": Case(crm[["employees", "plan", "w"]], {"algorithm": "mixture", "missing": "ignore", "options": {}}),
    }  # fmt: skip
    return result
