"""A table with every kind of column, and missing values in most: two seeds give two tables of the same shape."""

from __future__ import annotations

import numpy as np
import pandas as pd


def customers(seed: int, n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    frame = pd.DataFrame({
        "age": np.round(np.where(group, 30, 60) + rng.normal(0, 6 + seed, n), 1),
        "score": np.round(rng.normal(5 * group, 1 + seed, n), 2),
        "amount": np.round(np.exp(rng.normal(3 + 3 * group, 1.2, n)), 2),
        "joined": pd.Timestamp("2019-03-01") + pd.to_timedelta(rng.integers(1, 900, n) + 500 * group, "D"),
        "city": rng.choice(["Berlin", "Paris, Texas", "Rome=Roma"], n, p=[0.5, 0.3, 0.2]),
        "member": rng.choice(["yes", "no"], n, p=[0.3, 0.7]),
    })  # fmt: skip
    for name, share in (("age", 0.1), ("amount", 0.06), ("joined", 0.04), ("city", 0.05), ("member", 0.05)):
        frame.loc[rng.random(n) < share, name] = None
    return frame


def as_csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, date_format="%Y-%m-%d")


def kunden(n: int = 120) -> pd.DataFrame:
    """A table as a German spreadsheet writes it, as text: decimal commas, days before months, ja and nein."""
    rng = np.random.default_rng(5)
    group = rng.integers(2, size=n)
    swapped = str.maketrans(",.", ".,")
    turnover = [f"{value:,.2f}".translate(swapped) for value in np.exp(rng.normal(5 + 3 * group, 1.0, n))]
    since = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D")
    frame = pd.DataFrame({
        "Umsatz": turnover,
        "Alter": [f"{value:.0f}" for value in rng.normal(30 + 20 * group, 5, n)],
        "Bestellungen": [str(value) for value in rng.poisson(3 + 5 * group, n)],
        "Seit": since.strftime("%d.%m.%Y"),
        "Stadt": rng.choice(["Berlin", "Köln", "Ulm"], n, p=[0.5, 0.3, 0.2]),
        "Aktiv": rng.choice(["ja", "nein"], n, p=[0.6, 0.4]),
    })  # fmt: skip
    for name in ("Alter", "Seit", "Stadt"):
        frame.loc[rng.random(n) < 0.08, name] = None
    return frame
