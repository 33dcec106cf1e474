"""Exported models have the labels of `coterie predict`, whatever columns are called and cells contain."""

from __future__ import annotations

from pathlib import Path

from coterie.algorithms import ALGORITHMS
from fuzz.call import quiet
from fuzz.exported import EXPORTED, PREPARATIONS, fitted, new_rows, require_same_labels, training_table
from fuzz.law import Case, law

N_NEW = 500


@law(["export"], weight=6, hypothesis=False)
def exports_have_the_labels_of_predict(case: Case) -> None:
    draw, model = case.draw, Path("model.safetensors")
    algorithm = draw.one_of(EXPORTED)
    handles_missing = ALGORITHMS[algorithm].handles_missing
    preparation = draw.one_of([name for name in PREPARATIONS if name != "ignored" or handles_missing])
    table, categories = training_table(draw, draw.integer(30, 200))
    case.note(f"{algorithm}, {preparation}, categories {categories}, columns {table.columns}")
    with quiet():
        fitted(model, table, algorithm, preparation, categories)
        require_same_labels(model, new_rows(draw, table, categories, N_NEW), preparation)
