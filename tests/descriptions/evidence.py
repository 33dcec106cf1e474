"""Checks of what a report says about the fit, the separation of the clusters, and their rows."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pandas as pd

from descriptions import recomputed as again
from descriptions.checks import Description, card
from report.pages import Node

DEGREES = {0.7: "are well separated", 0.5: "are separated, with some", 0.25: "touch or overlap", -1: "are hardly"}


def figure_rows(section: Node, title: str = "") -> list[list[str]]:
    """The rows of the table of numbers of a figure, or of the last table of a section."""
    figures = [each for each in section.all("figure") if each.all("h3") and each.all("h3")[0].text == title]
    tables = (figures[0] if figures else section).all("table", cls="numbers")
    return tables[-1].rows() if tables else []


def fit(said: Description):
    """The line of the method, the heading, the cards and the written files."""
    result, page, clusters = said.result, said.page, said.result["clusters"]
    labels = set(said.labels[said.members])
    if (result["k"], {one["cluster"] for one in clusters}, result["n_columns"]) != (
        len(labels), labels, len(said.table.columns)
    ):  # fmt: skip
        yield f"k is {result['k']}, with {result['n_columns']} columns"
    method = next(line for line in said.text.splitlines() if f", k = {len(labels)} · " in line)
    shown = dict(re.findall(r"(inertia|a row|BIC|after|best of) ([\d.,−-]+\w?)", method))
    scores, restarts = result["scores"], said.case.options.get("options", {"n_init": 2}).get("n_init")
    for word, score in (("inertia", "inertia"), ("a row", "log-likelihood a row"), ("BIC", "BIC")):
        if not again.agrees(shown.get(word, "–"), scores.get(score)):
            yield f"{method!r} for {scores}"
    if {shown.get("after", "–"), card(said, "iterations")} != {str(result.get("iterations") or "–")}:
        yield f"{method!r} and {card(said, 'iterations')} for {result.get('iterations')} iterations"
    about = {each.one(cls="label").text: each.all(cls="about") for each in page.all(cls="card")}
    if restarts and not (shown["best of"] == str(restarts) and f"best of {restarts}" in about["iterations"][0].text):
        yield f"{method!r} and {about['iterations'][0].text!r} for {restarts} restarts"
    requested = about["clusters"][0].text
    if card(said, "clusters") != str(len(labels)) or str(said.case.options.get("k", 3)) not in requested:
        yield f"{card(said, 'clusters')} clusters, {requested}"
    kinds = (len(result["columns"]), "numeric"), (len(result["categories"]), "categorical")
    used = " and ".join(f"{n} {kind} column{'s' if n > 1 else ''}" for n, kind in kinds if n)
    facts = page.one("p", cls="facts").text
    n_used, n = int(said.used.sum()), len(said.table)
    rows = f"{n} rows" if n_used == n else f"{n_used} of {n} rows"
    n_skipped = len(result["skipped"])
    start = f"{rows} · {used}{f', {n_skipped} skipped' if n_skipped else ''} · "
    if (
        not facts.startswith(start)
        or f"missing: {result['missing']} · " not in facts
        or (f" · K = {len(labels)} (" not in facts)
    ):
        yield facts
    if f"table{said.case.suffix}: {len(said.table)} rows, {len(said.table.columns)} columns;" not in (
        page.one("section", id="reproduce").text.replace("1 columns", "1 column").replace("1 column;", "1 columns;")
    ):
        yield "the section about the input has another size"
    if f".csv ({len(said.table)} rows, + cluster" not in said.text:
        yield "another number of written rows"
    if f"(profiles, {len(clusters)} cluster{'s' if len(clusters) > 1 else ''})" not in said.text:
        yield "another number of profiles"
    sure = page.one("section", id="sure").text
    stated = [int(k) for pair in re.findall(r"(\d+) clusters\. |You set K = (\d+);", page.text) for k in pair if k]
    if set(stated) != {len(labels)} and (stated or len(labels) > 1):
        yield f"{stated} clusters: {sure}"
    reasons = result["skipped"]
    titles = [each.text.partition(": ")[2] for each in page.one("header").all("dt") if each.text.startswith("skipped")]
    if set(titles) != set(reasons.values()):
        yield f"{titles} for {reasons}"
    noise = re.search(r"\n +noise +(\S+) +(\S+)", said.text)
    sentence = re.search(r"(\d+) rows are noise \((\S+) of the rows\)", page.text)
    n = int((said.labels < 0).sum())
    if n and not (
        again.agrees(noise[1], n) and again.agrees(noise[2], n / len(said.table))
        and again.agrees(sentence[1], n) and again.agrees(sentence[2], n / len(said.table))
    ):  # fmt: skip
        yield f"{noise and noise[0]}, {sentence and sentence[0]}: {n} rows are noise"


def rules_everywhere(said: Description):
    """The rules of the JSON, as texts and as conditions, are those of the terminal, the page and the profiles."""
    page_rows = {row.one("td", cls="name").text: row for row in said.page.one("table", cls="clusters").all("tr")[1:]}
    profiles = said.profiles.set_index("cluster")
    for one in said.result["clusters"]:
        rule, name = one["rule"], one["name"] or str(one["cluster"])
        line = re.search(rf"\n +{name}  (?!no )(.+ (?:≤|>|=) [^:]+): \d+ of", said.text.partition("rule, in the")[2])
        on_page = [each for each in page_rows[name].all("div", cls="rule") if each.all("strong")]
        if rule is None or not rule["text"] or not rule["describes"]:
            if line or on_page:
                yield f"{line} {on_page} for {rule}"
            continue
        text = " ".join(on_page[0].one("strong").text.split()).removesuffix(":")
        if (line[1] if line else "") != rule["text"] or text != rule["text"]:
            yield f"{line and line[1]!r} and {text!r} for {rule['text']!r}"
        counts = re.search(r"(\d+) of (\d+) rows?, (?:over )?(\d+)%", on_page[0].text)
        if (int(counts[1]), int(counts[2])) != (rule["correct"], one["rows"]) or (
            not again.agrees(counts[3], 100 * rule["precision"]) and "over 99" not in on_page[0].text
        ):
            yield on_page[0].text
        row = profiles.loc[one["cluster"]] if "rule" in profiles else None
        if row is not None and not (
            row["rule"] == rule["text"]
            and again.close(row["rule coverage"], rule["coverage"])
            and again.close(row["rule precision"], rule["precision"])
        ):
            yield f"profiles of cluster {name}: {row['rule']}, {row['rule coverage']}, {row['rule precision']}"
        yield from _conditions(said, one)


def _conditions(said: Description, one: dict):
    """The conditions of a rule hold in the rows in which its text holds, and both correlate with the cluster."""
    rule, table = one["rule"], said.table[said.used]
    mask = pd.Series(True, table.index)
    for condition in rule["conditions"]:
        values = table[condition["column"]]
        if pd.api.types.is_datetime64_any_dtype(values):
            condition = condition | {end: pd.Timestamp(condition[end]) for end in ("lower", "upper")
                                     if condition.get(end) is not None}  # fmt: skip
        if condition.get("lower") is not None:
            mask &= values > condition["lower"]
        if condition.get("upper") is not None:
            mask &= values <= condition["upper"]
        if condition.get("values"):
            mask &= values.isin(condition["values"])
    if not mask.equals(again.satisfies(rule["text"], table)):
        yield f"{rule['conditions']} are not {rule['text']!r}"
    inside, mass = said.rows_of(one)[said.used].to_numpy(dtype=float), said.mass[said.used].to_numpy(dtype=float)
    covariance = np.cov(np.stack([inside, mask.to_numpy(dtype=float)]), aweights=mass, bias=True)
    phi = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    if not np.isclose(rule["phi"], phi, atol=1e-9):
        yield f"phi of {rule['text']!r} is {rule['phi']}, not {phi}"


def silhouettes(said: Description):
    """The sentences, the card, the tables and the profiles about silhouettes."""
    page, values = said.page, said.silhouettes
    sure, mean_on_card = page.one("section", id="sure").text, card(said, "mean silhouette")
    if values is None:
        if "mean silhouette is" in sure or mean_on_card != "–":
            yield sure
        return
    labels, mean = said.labels.loc[values.index].to_numpy(), values.mean()
    means = values.groupby(labels).mean()
    degree = next(words for limit, words in DEGREES.items() if mean > limit)
    if f"The clusters {degree}" not in sure or f"the mean silhouette is {mean:.2f}." not in sure.replace("−", "-"):
        yield f"mean silhouette {mean}: {sure}"
    if not again.agrees(mean_on_card, mean) or f"of all {values.index.nunique()} rows" not in page.text:
        yield f"card {mean_on_card}, of {values.index.nunique()} rows"
    worst = re.search(r"Cluster (\S+) is the least separated: its mean silhouette is (\S+), and (\S+) of its", sure)
    if (worst is None) != (means.min() > 0.25):
        yield f"nothing about the lowest of {means}"
    elif worst:
        inside = values[labels == said.named(worst[1])["cluster"]]
        if not (
            np.isclose(means.min(), inside.mean())
            and again.agrees(worst[2], inside.mean())
            and again.agrees(worst[3], (inside < 0).mean())
        ):
            yield worst[0]
    fitting = page.one("section", id="fitting")
    for name, mass, shown, below in figure_rows(fitting, "Silhouettes"):
        inside = values[labels == said.named(name)["cluster"]]
        if int(mass) != len(inside) or not again.agrees(shown, inside.mean()):
            yield f"cluster {name}: {mass} rows, {shown}"
        if not again.agrees(below, (inside < 0).mean()):
            yield f"cluster {name}: {below} below 0"
    caption = fitting.all("figcaption")[0].text
    n_below = re.search(r"(\S+) of the (?:weight of the )?rows (?:are|is) below 0:", caption)
    if (n_below is None) != (values.min() >= 0) or (n_below and not again.agrees(n_below[1], (values < 0).mean())):
        yield caption
    for row in page.one("table", cls="clusters").all("tr")[1:]:
        name, shown = row.one("td", cls="name").text, row.one("td", cls="fits").text
        if not again.agrees(shown, means[said.named(name)["cluster"]]):
            yield f"silhouette {shown} of {name}"
    for j, shown in said.profiles.set_index("cluster")["silhouette"].items() if "silhouette" in said.profiles else ():
        if not np.isclose(shown, means[j], atol=1e-6):
            yield f"silhouette of {j} in profiles is {shown}"


def typical_rows(said: Description):
    """The rows that are nearest to the center of each cluster."""
    if said.X is None:
        return
    X = pd.DataFrame(said.X, index=said.table.index[said.used])
    name = next((name for name, reason in said.result["skipped"].items() if reason == "identifier"), None)
    for row in said.page.one("table", cls="clusters").all("tr")[1:]:
        members = said.rows_of(said.named(row.one("td", cls="name").text))
        inside, mass = X[members[said.used]], said.mass[members & said.used]
        distances = ((inside - np.average(inside, axis=0, weights=mass)) ** 2).sum(axis=1)
        texts = (said.table[name] if name else said.table.index.to_series()).map(lambda value: f"{value:.15g}")
        shown = [text.strip() for text in row.all("td")[-1].text.split(",")]
        by_text = dict(zip(texts[distances.index], distances, strict=True))
        of_shown = [by_text[text] for text in shown if text in by_text]
        if len(of_shown) != len(shown) or not np.allclose(of_shown, distances.nsmallest(len(shown))):
            yield f"typical rows are {shown}, not {texts[distances.nsmallest(len(shown)).index].tolist()}"


def tree(said: Description):
    """The sizes, and the heights of Ward's merges of the centers."""
    sections = said.page.all("section", id="hierarchy")
    if not sections or said.X is None:
        return
    X, labels = said.X, said.labels[said.used].to_numpy()
    mass = said.mass[said.used].to_numpy()
    parts = [labels == j for j in np.unique(labels[labels >= 0])]
    groups = [(int(part.sum()), np.average(X[part], axis=0, weights=mass[part])) for part in parts]
    for name, n in sections[0].all("table", cls="numbers")[0].rows() if len(groups) > 1 else ():
        if int(n) != said.rows_of(said.named(name)).sum():
            yield f"{n} rows of {name}"
    if len(parts) > 1 and f"of the {len(parts)} centers" not in sections[0].all("figcaption")[0].text:
        yield sections[0].all("figcaption")[0].text
    heights: list[float] = []
    while len(groups) > 1:
        costs = {
            (i, j): (2 * n * m / (n + m)) ** 0.5 * float(np.linalg.norm(a - b))
            for (i, (n, a)), (j, (m, b)) in combinations(enumerate(groups), 2)
        }
        i, j = min(costs, key=lambda pair: costs[pair])
        heights.append(costs[i, j])
        (n, a), (m, b) = groups[i], groups[j]
        rest = [group for at, group in enumerate(groups) if at not in (i, j)]
        groups = [*rest, (n + m, (n * a + m * b) / (n + m))]
    lines = figure_rows(sections[0])[::-1] if len(parts) > 1 else []
    shown = [line[-1] for line in lines]
    if [int(line[0]) for line in lines] != list(range(len(parts), 1, -1)):
        yield f"{lines} of {len(parts)} clusters"
    if len(parts) > 1 and not (len(shown) == len(heights) and all(map(again.agrees, shown, heights))):
        yield f"heights {shown}, not {heights}"


def map_of_rows(said: Description):
    """The number of rows, and the shares of variance of principal axes."""
    place = said.page.one("section", id="place")
    caption = place.all("figcaption")[0].text if place.all("figcaption") else ""
    if said.X is not None and said.X.shape[1] == 1:
        return  # a histogram
    if f"; {said.used.sum()} row" not in caption:
        yield caption
    axes = dict(re.findall(r"principal axis (\d) \((\S+) %\)", caption))
    if not axes or said.X is None:
        return
    covariance = np.cov(said.X, rowvar=False)
    variances = np.linalg.eigvalsh(np.atleast_2d(covariance))[::-1]
    for number, share in axes.items():
        if not again.agrees(share, 100 * variances[int(number) - 1] / variances.sum()):
            yield f"{caption}: {100 * variances / variances.sum()}"


def convergence(said: Description):
    """The ends of the runs, and the curve of the run that is the result."""
    section = said.page.one("section", id="convergence")
    if said.result["method"] != "kmeans":
        return
    inertia, n, n_init = said.result["scores"]["inertia"], said.result["iterations"], 2
    tables = [table.rows() for table in section.all("table", cls="numbers")]
    if not tables:
        ends = re.search(r"(?:best of (\d+) restarts went from \S+ to|stayed at) (\S+?)\.?(?: |$)", section.text)
        if not (n == 1 and again.agrees(ends[2], inertia) and ends[1] in (None, str(n_init))):
            yield section.text
        return
    runs, steps = tables
    equal = [again.agrees(end, inertia) for _, _, end in runs]
    best = [(int(n_iter), again.agrees(end, inertia)) for run, n_iter, end in runs if "◀" in run]
    if best != [(n, True)] or len(runs) != n_init:
        yield f"{runs} for {inertia} after {n} iterations"
    sentence = re.search(r"objective is (\S+) after (\d+) iterations?; (?:(\d+) of|all) (\d+) restarts", section.text)
    counts = int(sentence[2]), int(sentence[3] or sentence[4]), int(sentence[4])
    if counts != (n, sum(equal), n_init) or not again.agrees(sentence[1], inertia):
        yield f"{sentence[0]} for {inertia} after {n}, {runs}"
    values = [float(shown.replace(",", "")) for _, shown in steps if shown[-1].isdigit()]
    if [int(step) for step, _ in steps] != list(range(n + 1)) or not again.agrees(steps[-1][1], inertia):
        yield f"{steps} for {inertia} after {n}"
    if values != sorted(values, reverse=True):
        yield f"the objective rises: {values}"


OF_PAGES = (fit, rules_everywhere, silhouettes, typical_rows, tree, map_of_rows, convergence)
