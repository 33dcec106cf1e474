"""What is said about the number of clusters, separation and stability is recomputed from the input file."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, calinski_harabasz_score, davies_bouldin_score, silhouette_samples

from coterie import jobs
from coterie.jobs import Job, choose_k_job
from coterie.report.json import as_dict
from coterie.report.text import as_text
from descriptions import evidence
from descriptions import recomputed as again
from descriptions.checks import Description
from descriptions.tables import Case, cases, measures, read_values
from report.pages import read
from selection.test_reasons import check_sentence
from selection.test_reasons import sentences as sentences_of

pytestmark = pytest.mark.whole_search
CASES = cases()
NAMES = ("plain", "customers", "skewed, even", "dates, XLSX", "duplicates", "one-hot by hand")
NOISE = Case(pd.DataFrame(np.random.default_rng(0).normal(size=(80, 3)).round(3), columns=["a", "b", "c"]), {})
TABLES = {name: CASES[name] for name in NAMES} | {"noise only": NOISE, "far apart": Case(10 * measures(90, 3), {})}
STABLE = {0.9: "are stable", 0.75: "are mostly stable", -1: "are not stable"}
CHOSEN = {"clear": "the number is clear", "weak": "the evidence for this number is weak"}


def described(case: Case, folder, monkeypatch) -> tuple[Description, Any]:
    details: list[Any] = []
    choose = choose_k_job.choose

    def recording(*arguments, **options):
        choice = choose(*arguments, **options)
        details.append(choice[1])
        return choice

    monkeypatch.setattr(choose_k_job, "choose", recording)
    path = case.write(folder)
    files = {"output": folder / "out.csv", "report": folder / "r.html"}
    result = jobs.run(Job(path, **{"k": "auto", "budget": "quick", **case.options, **files}))
    table, labels = read_values(path, case.kinds), pd.read_csv(files["output"])["cluster"]
    for name in result.categories:
        table[name] = table[name].map(str, na_action="ignore")
    plain = json.loads(json.dumps(as_dict(result)))
    page = read(files["report"].read_text("utf-8"))
    return Description(case, table, plain, as_text(result), page, table, labels), details[0]


@pytest.mark.parametrize("name", TABLES)
def test_the_choice_and_the_evidence_are_those_of_the_rows(name, tmp_path, monkeypatch):
    said, details = described(TABLES[name], tmp_path, monkeypatch)
    checks = (table_of_k, words_about_k, resampling, evidence.silhouettes, evidence.typical_rows, evidence.tree)
    problems = [f"{check.__name__}: {problem}" for check in checks for problem in check(said)]
    for sentence in sentences_of(details):
        check_sentence(details, np.asarray(details.sweep.X), sentence)
    assert not problems, "\n".join(problems)


def table_of_k(said: Description):
    """The values for the chosen K, and the weighted support of the votes; the terminal shows those of the JSON."""
    choice, X, labels = said.result["choice"], said.X, said.labels.to_numpy()
    row = next(row for row in choice["table"] if row["k"] == choice["recommended"])
    one = next(row for row in choice["table"] if row["k"] == 1)
    expected = {"objective": said.result["scores"]["inertia"]}
    if choice["recommended"] > 1:
        expected["silhouette"] = silhouette_samples(X, labels).mean()
        expected["calinski_harabasz"] = calinski_harabasz_score(X, labels)
        expected["davies_bouldin"] = davies_bouldin_score(X, labels)
    for key, value in expected.items():
        if row.get(key) is not None and not np.isclose(row[key], value, rtol=1e-6):
            yield f"{key} of K = {row['k']} is {row[key]}, not {value}"
    if not np.isclose(one["objective"], ((X - X.mean(axis=0)) ** 2).sum()):
        yield f"objective of one cluster is {one['objective']}"
    if [row["recommended"] for row in choice["table"]] != [row["k"] == said.result["k"] for row in choice["table"]]:
        yield "another K is marked"
    if (said.result["recommended"], said.result["strength"]) != (choice["recommended"], choice["strength"]):
        yield "the top level has another K"
    if choice["confidence"] != row["support"] or not 0 <= row["support"] <= 1:
        yield f"support {choice['confidence']}"
    lines = said.text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == ["K"])
    names = {"inertia": "objective", "silhouette": "silhouette", "gap ± se": "gap", "BIC": "bic", "ICL": "icl",
             "pred. strength": "prediction_strength", "valleys": "valleys", "support": "support"}  # fmt: skip
    heads = re.split(r"\s{2,}", lines[start].strip())[1:]
    for line, row in zip(lines[start + 1 :], choice["table"], strict=False):
        k, *cells = re.split(r"\s{2,}", line.replace("◀", " ").strip())
        if (int(k), "◀" in line) != (row["k"], row["recommended"]):
            yield line
        for head, cell in zip(heads, cells, strict=True):
            shown, value = cell.split(" ± ")[0], row.get(names[head])
            if not again.agrees(shown, value) and not (value is not None and abs(value) >= 1000):
                yield f"{head} of K = {k} is {shown}, not {value}"


def words_about_k(said: Description):
    """The same words everywhere; those of the report and of warnings fit the votes beside them."""
    choice, page = said.result["choice"], said.page
    k, strength, reason = choice["recommended"], choice["strength"], choice["reason"]
    heading = choice["heading"]
    if heading not in said.text or reason not in said.text or ("✓" in said.text) != (strength == "clear"):
        yield "the terminal has another reason"
    sure = page.one("section", id="sure").text
    if reason not in sure:
        yield f"{sure!r} has another reason"
    expected = "No number of clusters is clear: all rows are in one cluster." if k == 1 else CHOSEN.get(strength, "")
    if expected not in sure:
        yield f"{strength}: {sure}"
    number = page.one("section", id="number").text
    if f"support is {choice['confidence']:.2f} (maximum 1)" not in number or f"K = {k} is " not in number:
        yield number[:200]
    votes = {vote["criterion"]: vote["k"] for vote in choice["votes"] if vote["k"] and vote["weight"] > 0}
    about = [each for each in said.result["warnings"] if "criteria disagree" in each or "no clear number" in each]
    for warning in about:
        listed = re.findall(r"([^:]+?) prefers? (\d+)(?: and | |\.|, |$)", warning.partition(": ")[2])
        told = {name.strip(): int(which) for names, which in listed for name in re.split(r", | and ", names) if name}
        if told != votes:
            yield f"{warning!r} for {votes}"
    if any("to have no clusters" in each for each in said.result["warnings"]):
        test = next(vote["note"] for vote in choice["votes"] if vote["criterion"] == "test for clusters")
        if float(re.search(r"p = ([\d.e-]+)\)", test)[1]) < 0.01:
            yield f"no clusters, but {test}"
    if (
        (strength == "clear") != (not about)
        and k > 1
        and not any("is weak" in each for each in said.result["warnings"])
    ):
        yield f"{strength}: {said.result['warnings']}"
    shown = [line[:2] for line in evidence.figure_rows(page.one("section", id="number"), "Votes of the criteria")]
    if {name: k for name, k in shown if k != "–"} != {
        vote["criterion"]: str(vote["k"]) for vote in choice["votes"] if vote["k"]
    }:
        yield f"votes are {shown}"


def resampling(said: Description):
    """The stability is about that of scikit-learn's K-means with many initialisations; the word fits the number."""
    sure = said.page.one("section", id="sure").text
    agreement = r"\(mean adjusted Rand index (\S+), (\d+) resamples\)"
    found = re.search(rf"The clusters (are [a-z ]*stable) under resampling {agreement}", sure)
    card = next(each for each in said.page.all(cls="card") if each.one(cls="label").text == "stability")
    if found is None:
        if card.one(cls="value").text != "–":
            yield "only the card has a stability"
        return
    X, k, rng = said.X, said.result["k"], np.random.default_rng(0)
    shown = float(found[2])
    degree = next(words for limit, words in STABLE.items() if shown >= limit)
    if found[1] != degree or card.one(cls="value").text != found[2]:
        yield f"{found[0]}, {card.text}"
    samples = [rng.integers(len(X), size=len(X)) for _ in range(10)]
    labels = [KMeans(k, n_init=10, random_state=0).fit(X[sample]).predict(X) for sample in samples]
    expected = np.mean([adjusted_rand_score(x, y) for x, y in combinations(labels, 2)])
    if abs(shown - expected) > 0.02 + 0.3 * (1 - expected):
        yield f"stability {shown}, not {expected}"
