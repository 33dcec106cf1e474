"""Checks of all that is said about a table and its clusters: each yields what is not true."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import silhouette_samples

from descriptions import recomputed as again
from descriptions.tables import Case
from report.pages import Node

NOTABLE = 0.5  # standard deviations above which a column is named
# ``employees −0.9 s.d.`` on the terminal, ``employees 8.44 (−0.9 s.d.)`` on the page
DEVIATION = re.compile(r"(\S+)(?: (?P<mean>\S+))? \(?(?P<d>[−+][\d.]+) s\.d\.\)?(?: \(mean (?P<date>\S+)\))?")
TRAITS = 3  # columns that are named, at most


@dataclass
class Description:
    """All that a job said and wrote about a table, and the table in its file."""

    case: Case
    table: pd.DataFrame  # values of the input file
    result: dict[str, Any]  # JSON
    text: str
    page: Node
    profiles: pd.DataFrame
    labels: pd.Series  # of the rows; missing for rows that were not used

    @cached_property
    def used(self) -> pd.Series:
        return self.labels.notna()

    @cached_property
    def members(self) -> pd.Series:
        return self.labels >= 0

    @cached_property
    def weight(self) -> pd.Series | None:
        return self.table[self.result["weight"]] if self.result["weight"] else None

    @cached_property
    def mass(self) -> pd.Series:
        return pd.Series(1.0, self.table.index) if self.weight is None else self.weight.astype(float)

    @cached_property
    def columns(self) -> list[str]:
        return [*self.result["columns"], *self.result["categories"]]

    @cached_property
    def transforms(self) -> dict[str, str]:
        """The transform of each column, as options ask for it or a note says."""
        given = [text.split(":") for text in self.case.options.get("transform", ())]
        found = {column: name for name, column in given if name != "none"}
        for note in self.result["notes"]:
            if match := re.match(r"(log|log1p|sqrt) of (.+): skewed", note):
                found |= dict.fromkeys(match[2].split(", "), match[1])
        return found

    @cached_property
    def X(self) -> np.ndarray | None:
        """The rows that are used, prepared without coterie; None if categories or missing values stay."""
        options, used = self.case.options, self.table[self.used]
        if options.get("missing") == "ignore":
            return None
        columns, categories = self.result["columns"], self.result["categories"]
        missing, scale = options.get("missing", ""), options.get("scale", "standard")
        return again.prepared(used, columns, categories, missing, self.transforms, scale, self.weight)

    @cached_property
    def silhouettes(self) -> pd.Series | None:
        """Of the rows in clusters, of which weighted ones are in the table as often as their weight says."""
        index = again.repeated(self.labels[self.used & self.members], self.weight).index
        labels = self.labels.loc[index]
        if self.X is None or labels.nunique() < 2:
            return None
        X = pd.DataFrame(self.X, index=self.table.index[self.used]).loc[index]
        return pd.Series(silhouette_samples(X, labels), index)

    def rows_of(self, cluster: dict[str, Any]) -> pd.Series:
        return self.labels == cluster["cluster"]

    def values(self, key: str) -> pd.Series:
        """A column, or the zeros and ones of ``column=value``, which are missing where the column is."""
        if key in self.table.columns:
            return self.table[key]
        name, value = next((n, key[len(n) + 1 :]) for n in self.result["categories"] if key.startswith(f"{n}="))
        return (self.table[name] == value).astype(float).where(self.table[name].notna())

    @cached_property
    def features(self) -> list[str]:
        """Names of the numbers that are used, and of all values of categories."""
        one_hot = [
            f"{name}={value}" for name in self.result["categories"] for value in sorted(set(self.table[name].dropna()))
        ]
        return [*self.result["columns"], *one_hot]

    def mean(self, key: str, rows: pd.Series) -> float:
        mean = again.mean(self.values(key)[rows], self.weight)
        if not pd.api.types.is_datetime64_any_dtype(self.values(key)):
            return mean
        return again.numbers(self.table[key].dt.normalize()).max() - mean  # the age in days, as notes say

    def difference(self, key: str, rows: pd.Series) -> float:
        return again.difference(self.values(key), rows, self.members, self.weight, self.transforms.get(key))

    def named(self, name: str) -> dict[str, Any]:
        """The cluster that a text calls so."""
        return next(one for one in self.result["clusters"] if name in (one["name"], str(one["cluster"])))

    def section(self, title: str) -> tuple[list[str], list[list[str]]]:
        """Head and rows of the table of numbers of a figure in the section of profiles."""
        figures = self.page.one("section", id="profiles").all("figure")
        figure = next((each for each in figures if each.all("h3")[0].text == title), None)
        if figure is None:
            return [], []
        table = figure.all("table", cls="numbers")[-1]
        return [cell.text for cell in table.all("th")], table.rows()


def card(said: Description, label: str) -> str:
    """The number on a card of the page."""
    cards = {card.one(cls="label").text: card.one(cls="value").text for card in said.page.all(cls="card")}
    return cards.get(label, "–")


def sizes(said: Description):
    result, mass = said.result, said.mass
    if (result["rows"], result["rows_used"]) != (len(said.table), said.used.sum()):
        yield f"{result['rows_used']} of {result['rows']} rows; used are {said.used.sum()} of {len(said.table)}"
    if result["noise"] is not None and result["noise"] != (said.labels < 0).sum():
        yield f"{result['noise']} rows of noise"
    for one in result["clusters"]:
        rows = said.rows_of(one)
        if one["rows"] != rows.sum() or not again.close(one["share"], mass[rows].sum() / mass[said.used].sum()):
            yield f"cluster {one['cluster']}: {one['rows']} rows, share {one['share']}"


def means(said: Description):
    for one in said.result["clusters"]:
        expected = {key: said.mean(key, said.rows_of(one)) for key in said.features}
        expected = {key: value for key, value in expected.items() if not np.isnan(value)}
        if set(expected) != set(one["means"]):
            yield f"cluster {one['cluster']} has means of {sorted(one['means'])}, not of {sorted(expected)}"
            continue
        for key, value in expected.items():
            scale = again.numbers(said.values(key)).std()
            if not again.close(one["means"][key], value, scale):
                yield f"mean of {key} in cluster {one['cluster']} is {one['means'][key]}, not {value}"


def differences(said: Description):
    for one in said.result["clusters"]:
        rows, shown = said.rows_of(one), one["stands_out_by"]
        for key, content in shown.items():
            values = said.values(key)
            if isinstance(content, dict):
                expected = {"share": said.mean(key, rows), "overall": said.mean(key, said.members)}
                if not again.is_share(values) or not all(
                    again.close(content[part], expected[part]) for part in expected
                ):
                    yield f"{key} in cluster {one['cluster']} is {content}, not {expected}"
            elif again.is_share(values) or not again.close(content, said.difference(key, rows), 1.0):
                yield f"{key} in cluster {one['cluster']} differs by {content}, not {said.difference(key, rows)}"
            if abs(said.difference(key, rows)) < NOTABLE - 1e-9:
                yield f"{key} hardly differs in cluster {one['cluster']}"
        left_out = [key for key in said.features if key.partition("=")[0] not in {k.partition("=")[0] for k in shown}]
        notable = [key for key in left_out if abs(said.difference(key, rows)) > NOTABLE + 1e-9]
        least = min((abs(said.difference(key, rows)) for key in shown), default=0.0)
        larger = [key for key in notable if abs(said.difference(key, rows)) > least + 1e-9]
        if (notable and len(shown) < TRAITS) or larger:
            yield f"cluster {one['cluster']} also differs in {notable}"


def missing_values(said: Description):
    empty = {name: int(n) for name, n in said.table[said.columns].isna().sum().items() if n}
    if said.result["missing_values"] != empty:
        yield f"missing values are {said.result['missing_values']}, not {empty}"
    for one in said.result["clusters"]:
        inside = {name: int(n) for name, n in said.table.loc[said.rows_of(one), said.columns].isna().sum().items() if n}
        if one["missing"] != inside:
            yield f"missing values of cluster {one['cluster']} are {one['missing']}, not {inside}"
    counts = [int(n) for n in re.findall(r"(\d+) values? in", said.result["missing"])]
    spread = [int(n) for n in re.findall(r"values? in (\d+) col", said.result["missing"])]
    if said.case.options.get("missing") == "drop":
        dropped = int(said.table[said.columns].isna().any(axis=1).sum())
        if (
            said.result["missing"] != f"dropped {dropped} row{'s' if dropped > 1 else ''}"
            or said.used.sum() != len(said.table) - dropped
        ):
            yield f"{said.result['missing']}, of {dropped} incomplete rows"
    elif (sum(counts), sum(spread)) != (sum(empty.values()), len(empty)):
        yield f"{said.result['missing']!r} for {empty}"
    for name in said.table.columns:
        is_sparse = 2 * said.table[name].isna().sum() > len(said.table)
        reason = said.result["skipped"].get(name, "")
        mostly = re.fullmatch(r"mostly missing \((\d+) of (\d+) rows\)", reason)
        if mostly and (int(mostly[1]), int(mostly[2])) != (said.table[name].isna().sum(), len(said.table)):
            yield f"{name} is {reason}"
        if is_sparse and name in said.columns and name not in said.case.options.get("include", ()):
            yield f"{name} is used, although it is mostly missing"
        if mostly and not is_sparse:
            yield f"{name} is {reason}"


def rules(said: Description):
    table, mass = said.table[said.used], said.mass[said.used]
    for one in said.result["clusters"]:
        rule = one["rule"]
        if rule is None or not rule["text"]:
            continue
        inside, fits = said.rows_of(one)[said.used], again.satisfies(rule["text"], table)
        both = inside & fits
        expected = {
            "rows": inside.sum(), "fitting": fits.sum(), "correct": both.sum(),
            "coverage": mass[both].sum() / mass[inside].sum(), "precision": mass[both].sum() / mass[fits].sum(),
        }  # fmt: skip
        for key in expected.keys() & rule.keys():
            if not again.close(rule[key], float(expected[key])):
                yield f"{key} of {rule['text']!r} is {rule[key]}, not {expected[key]}"


def profiles(said: Description):
    file = said.profiles.set_index("cluster")
    for one in said.result["clusters"]:
        row, rows = file.loc[one["cluster"]], said.rows_of(one)
        expected: dict[str, Any] = {"rows": rows.sum(), "share": one["share"]}
        for name in said.result["columns"]:
            values, inside = said.table[name], said.table[name][rows]
            statistics = {"mean": again.mean(inside, said.weight), "median": again.quantile(inside, 0.5, said.weight)}
            for statistic, value in statistics.items():
                shown = row[f"{name} {statistic}"]
                if pd.api.types.is_datetime64_any_dtype(values):  # the day
                    days = (pd.Timestamp(shown) - pd.Timestamp("1970-01-01")).days
                    if not -1e-9 <= value - days < 1:
                        yield f"{statistic} of {name} is {shown}"
                elif not again.close(shown, value, values.std()):
                    yield f"{statistic} of {name} in cluster {one['cluster']} is {shown}, not {value}"
        for key in said.features[len(said.result["columns"]) :]:
            name, _, value = key.partition("=")
            expected[f"{name}: {value}"] = said.mean(key, rows)
        for name in said.columns:
            if said.table.loc[said.members, name].isna().any():
                expected[f"{name} missing"] = said.table.loc[rows, name].isna().sum()
        for key, value in expected.items():
            if key not in row or not again.close(float(row[key]), float(value)):
                yield f"{key} of cluster {one['cluster']} is {row.get(key)}, not {value}"
    n_statistics = 2 * len(said.result["columns"])
    n_other = len(file.columns) - n_statistics - sum(column.startswith("rule") for column in file.columns)
    if n_other != len(expected) + ("name" in file) + ("silhouette" in file):
        yield f"columns are {list(file.columns)}"


def quantiles(said: Description):
    """The table of the box plots."""
    for name, cluster, *cells in said.section("Distributions")[1]:
        column = name.removeprefix("age of ").removesuffix(" (days)")
        values = said.table[column][said.rows_of(said.named(cluster))]
        if column != name:
            dates = said.table[column].dt.normalize()
            values = again.numbers(pd.Series(dates.max(), values.index)) - again.numbers(values)
        for cell, probability in zip(cells, (0.05, 0.25, 0.5, 0.75, 0.95), strict=True):
            value = again.quantile(values, probability, said.weight)
            if not again.agrees(cell, value):
                yield f"{probability:.0%} of {name} in cluster {cluster} is {cell}, not {value}"


def shares(said: Description):
    """The tables of categorical columns."""
    for name in said.table.columns:
        head, lines = said.section(name)
        for cluster, *cells in lines:
            rows = said.rows_of(said.named(cluster))
            texts, mass = said.table.loc[rows, name].map(str, na_action="ignore"), said.mass[rows]
            for value, cell in zip(head[1:], cells, strict=True):
                if value == "(missing)":
                    share = mass[texts.isna()].sum() / mass.sum()
                else:
                    share = mass[texts == value].sum() / mass[texts.notna()].sum()
                if not again.agrees(cell, share):
                    yield f"{value} of {name} in cluster {cluster} is {cell}, not {share}"


def terminal(said: Description):
    """The heading and the tables of clusters and rules."""
    lines = said.text.splitlines()
    n_columns = len(said.table.columns)
    if f"  {len(said.table)} rows · {n_columns} column{'s' if n_columns > 1 else ''} " not in lines[0]:
        yield lines[0]
    kinds = ("numeric", said.result["columns"]), ("categorical", said.result["categories"])
    used = " and ".join(f"{len(names)} {kind}" for kind, names in kinds if names)
    if f"→ using {used}" not in lines[0] or f"missing: {said.result['missing']}" not in lines[1]:
        yield f"{lines[0]} / {lines[1]}"
    start = next(i for i, line in enumerate(lines) if line.startswith("cluster"))
    if ("share of weight" in lines[start]) != (said.weight is not None):
        yield f"{lines[start]!r} for weight {said.result['weight']}"
    for line in lines[start + 1 : start + 1 + len(said.result["clusters"])]:
        name, n, share, *rest = re.split(r"\s{2,}", line.strip())
        one = said.named(name)
        yield from _size(said, one, n, share)
        if one["silhouette"] is not None and not again.agrees(rest[0], one["silhouette"]):
            yield f"silhouette {rest[0]}"
        yield from _traits(said, one, rest[-1])
    for line in lines:
        rule = re.search(r"(\d+) of (\d+) rows?, (over 99|\d+)% of (the weight of )?rows that fit the rule", line)
        if rule is None:
            continue
        one = said.named(re.split(r"\s{2,}", line.strip())[0])
        precision, shown = 100 * one["rule"]["precision"], rule[3]
        is_near = 99.5 <= precision < 100 if shown == "over 99" else again.agrees(shown, precision)
        if not is_near or (int(rule[1]), int(rule[2])) != (one["rule"]["correct"], one["rows"]):
            yield line
        if bool(rule[4]) != (said.weight is not None):
            yield f"{line!r} for weight {said.result['weight']}"


def _size(said: Description, one: dict[str, Any], rows: str, share: str):
    mask = said.rows_of(one)
    if not again.agrees(rows, mask.sum()) or not again.agrees(
        share, said.mass[mask].sum() / said.mass[said.used].sum()
    ):
        yield f"cluster {one['cluster']}: {rows} rows, {share}"


def _traits(said: Description, one: dict[str, Any], text: str):
    """What a cluster stands out by, in words."""
    rows = said.rows_of(one)
    if "no difference above" in text or "no single mean" in text:
        if one["stands_out_by"]:
            yield f"{text!r} for {one['stands_out_by']}"
        return
    for part in re.split(r"; |(?<=s\.d\.), |(?<=\)), ", text):
        if share := re.fullmatch(r"(.+?): +(?:(\S+) )?(\d+%), overall (\d+%)", part):
            key = share[1] if share[2] is None else f"{share[1]}={share[2]}"
            numbers = (share[3], said.mean(key, rows)), (share[4], said.mean(key, said.members))
        elif deviation := DEVIATION.fullmatch(part):
            key, date = deviation[1], deviation["date"] or deviation["mean"]
            numbers = ((deviation["d"], said.difference(key, rows)),)
            if key in said.table and pd.api.types.is_datetime64_any_dtype(said.table[key]):
                mean = pd.Timestamp("1970-01-01") + pd.Timedelta(days=again.mean(said.table[key][rows], said.weight))
                if date != mean.date().isoformat():
                    yield f"{part!r}: the mean is {mean}"
            elif deviation["mean"]:
                numbers += ((deviation["mean"], said.mean(key, rows)),)
        else:
            yield f"unknown words {part!r}"
            continue
        yield from (f"{part!r}: {shown} is not {value}" for shown, value in numbers if not again.agrees(shown, value))


def page(said: Description):
    """The table of clusters, and what the page says about missing values."""
    table = said.page.one("table", cls="clusters")
    for row in table.all("tr")[1:]:
        name, n = row.one("td", cls="name").text, row.one("td", cls="rows").text
        one = said.named(name)
        yield from _size(said, one, n, row.one("td", cls="share").text)
        yield from _traits(said, one, row.one("td", cls="apart").children[-1].text)
    if said.result["missing_values"]:
        listed = ", ".join(f"{name}: {n}" for name, n in said.result["missing_values"].items())
        if listed not in said.page.one("header").text:
            yield f"the heading does not list {listed}"


def chart_of_means(said: Description):
    """The means, and what is said about weights and missing values beside them."""
    head, lines = said.section("Means")
    for cluster, n, *cells in lines:
        rows = said.rows_of(said.named(cluster))
        if not again.agrees(n, rows.sum()):
            yield f"means of {n} rows"
        for name, cell in zip(head[2:], cells, strict=True):
            key = name.removeprefix("age of ").removesuffix(" (days)")
            mean, difference = cell.rstrip(")").split(" (")
            sign = -1.0 if key != name else 1.0  # the age of a later date is smaller
            is_zero = abs(said.mean(key, rows)) < 1e-9 * again.numbers(said.table[key]).std()
            if not (again.agrees(mean, said.mean(key, rows)) or (is_zero and mean == "0")):
                yield f"mean of {name} in cluster {cluster} is {mean}, not {said.mean(key, rows)}"
            if not again.agrees(difference, sign * said.difference(key, rows)):
                yield f"{name} differs by {difference}, not {sign * said.difference(key, rows)}"
    text = said.page.one("section", id="profiles").text
    left_out = int(said.table.loc[said.members, said.result["columns"]].isna().sum().sum())
    stated = re.search(r"(\d+) missing values? left out", text)
    if lines and (int(stated[1]) if stated else 0) != left_out:
        yield f"{stated and stated[0]!r}, of {left_out} missing values"
    if lines and ("weighted" in text) != (said.weight is not None):
        yield "does not say whether means are weighted"


def sentences(said: Description):
    """Notes and warnings."""
    words = [*said.result["notes"], *said.result["warnings"]]
    stated = next((each for each in words if each.startswith("descriptions leave out missing values")), None)
    has_missing = bool(said.result["missing_values"]) and said.case.options.get("missing") != "drop"
    expected = ", ".join(f"{name} {n}" for name, n in said.result["missing_values"].items())
    if (stated is not None) != has_missing or (stated and f": {expected} of {len(said.table)} rows." not in stated):
        yield f"{stated!r} for {expected}"
    if any("are weighted by" in each for each in words) != (said.weight is not None):
        yield f"weight {said.result['weight']}: {words}"
    for each in said.result["notes"]:
        if skipped := re.match(r"skipped as (.+): (\S.*) \(to use (?:it|them): ", each):
            wrong = [name for name in skipped[2].split(", ") if said.result["skipped"][name] != skipped[1]]
            if wrong:
                yield f"{each!r}: {said.result['skipped']}"
        for name, date in re.findall(r"(\w+) \(before (\S+)\)", each):
            if date != said.table[name].max().date().isoformat():
                yield f"{each!r}: {said.table[name].max()}"
    constant = {re.match(r'column "(.+)" is constant', each)[1] for each in words if "is constant" in each}
    used = [name for name in said.table.columns if said.table.loc[said.used, name].nunique() == 1]
    if constant != {
        name
        for name in used
        if pd.api.types.is_numeric_dtype(said.table[name])
        and not said.result["skipped"].get(name, "").startswith(("mostly", "weight"))
    }:
        yield f"constant are {used}, not {constant}"
    for each in words:
        if duplicate := re.match(r"([\d,]+) of ([\d,]+) rows \(([\d.]+%)\) are duplicates", each):
            n = int(said.table.loc[said.used, said.columns].duplicated().sum())
            if int(duplicate[1]) != n or not again.agrees(duplicate[3], n / said.used.sum()):
                yield f"{each!r}: {n} are"
    n = said.table.loc[said.used, said.columns].duplicated().mean()
    if n > 0.05 and said.case.options.get("missing") is None and not any("are duplicates" in each for each in words):
        yield f"nothing is said about {n:.0%} duplicates"


def separation(said: Description):
    """Silhouettes and inertia."""
    if said.X is None:
        return
    members = said.members[said.used].to_numpy()
    X, labels, mass = (np.asarray(each)[members] for each in (said.X, said.labels[said.used], said.mass[said.used]))
    within = sum(_squares(X[labels == j], mass[labels == j]) for j in np.unique(labels))
    if said.page.all(cls="card") and not again.agrees(card(said, "variance explained"), 1 - within / _squares(X, mass)):
        yield f"variance explained {card(said, 'variance explained')}"
    if said.result["method"] == "kmeans" and not np.isclose(said.result["scores"]["inertia"], within, rtol=1e-6):
        yield f"inertia {said.result['scores']['inertia']}, not {within}"
    for one in said.result["clusters"] if said.silhouettes is not None else ():
        mean = said.silhouettes[said.labels.loc[said.silhouettes.index] == one["cluster"]].mean()
        if not np.isclose(one["silhouette"], mean, atol=1e-6):
            yield f"silhouette of cluster {one['cluster']} is {one['silhouette']}, not {mean}"


def _squares(X: np.ndarray, mass: np.ndarray) -> float:
    return float(mass @ ((X - np.average(X, axis=0, weights=mass)) ** 2).sum(axis=1))


SHARED = (sizes, differences, rules, chart_of_means, quantiles, shares, separation)  # by jobs and the app
OF_JOBS = (*SHARED, means, missing_values, profiles, terminal, page, sentences)
