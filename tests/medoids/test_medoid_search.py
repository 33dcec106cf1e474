"""Search of K-medoids: many descents from independent starts and from jumps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from coterie import KMedoids
from coterie.errors import FitInterruptedWarning, ParameterError
from coterie.medoids import fasterpam, medoid_search
from coterie.medoids.distance_table import StoredDistances
from coterie.medoids.medoid_search import EFFORTS, Search, sample_of

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(90, 2)) * [1.0, 4.0] + 6.0 * rng.integers(4, size=(90, 1))
TABLE, ONES = StoredDistances(cdist(ROWS, ROWS), np.arange(90)), np.ones(90)
SMALL_SAMPLE = {kind: effort._replace(candidates=30) for kind, effort in EFFORTS.items()}


def searched(k, *, table=TABLE, w=ONES, seed=0, watch=lambda *_: False, **changed):
    search = Search(table, w, k, False, EFFORTS["auto"]._replace(**changed), 100, np.random.default_rng(seed))
    search.run(1, watch)
    return search


def test_the_default_is_as_good_as_the_best_of_many_starts():
    for seed, k in enumerate((2, 5, 9)):
        many = KMedoids(k, search="none", n_init=30, random_state=1).fit(ROWS).inertia_
        assert KMedoids(k, random_state=seed).fit(ROWS).inertia_ <= 1.005 * many


@pytest.mark.parametrize("options", [{}, {"objective": "silhouette"}, {"metric": "precomputed"}], ids=str)
def test_a_sample_of_the_candidates_leads_to_the_clusters_of_all_rows(options, monkeypatch):
    monkeypatch.setattr(medoid_search, "EFFORTS", SMALL_SAMPLE)
    monkeypatch.setattr(medoid_search, "PER_MEDOID", 5)
    monkeypatch.setattr(medoid_search, "OBJECTS", 60)
    X = cdist(ROWS, ROWS) if options else ROWS
    options = {"metric": "precomputed"} | options if options else {}
    many = KMedoids(3, search="none", n_init=30, random_state=1, **options).fit(X)
    model = KMedoids(3, random_state=0, **options).fit(X)
    assert model.history_[-1] <= 1.005 * many.history_[-1]
    assert model.converged_


def test_a_search_is_never_worse_than_the_initialisations_of_the_user():
    for seed in range(3):
        plain = KMedoids(6, search="none", n_init=3, random_state=seed).fit(ROWS).inertia_
        assert KMedoids(6, n_init=3, random_state=seed).fit(ROWS).inertia_ <= plain
    start = KMedoids(6, search="none", n_init=30, random_state=0).fit(ROWS)
    again = KMedoids(6, init=start.medoid_indices_, search="thorough", random_state=0).fit(ROWS)
    assert again.inertia_ <= start.inertia_


def test_initialisations_of_the_user_come_before_the_search():
    runs = []
    KMedoids(3, n_init=4, random_state=0, callback=lambda progress: runs.append(progress.run)).fit(ROWS)
    assert sorted(set(runs)) == list(range(6))  # four initialisations, the search, and its result
    assert runs == sorted(runs)


def test_the_earlier_words_mean_a_thorough_search():
    thorough = KMedoids(7, search="thorough", random_state=3).fit(ROWS)
    for word in ("fast", "global"):
        np.testing.assert_array_equal(
            KMedoids(7, search=word, random_state=3).fit(ROWS).medoid_indices_, thorough.medoid_indices_
        )


@pytest.mark.parametrize("word", ["long", None, ["auto"]])
def test_a_wrong_search_is_rejected(word):
    with pytest.raises(ParameterError, match="search must be 'none' or 'auto' or 'thorough'"):
        KMedoids(2, search=word).fit(ROWS)


@pytest.mark.parametrize("shortened", [False, True])
def test_any_number_of_threads_gives_the_same_medoids(shortened, monkeypatch):
    if shortened:  # each descent is a call of its own
        monkeypatch.setattr(medoid_search, "SLICE", 100)
    one, two = (KMedoids(5, random_state=2, n_jobs=n).fit(ROWS).medoid_indices_ for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_descents_in_separate_calls_are_those_of_one_call(monkeypatch):
    one = searched(6).best
    monkeypatch.setattr(medoid_search, "SLICE", 100)
    assert [loss for loss, _ in searched(6).best] == [loss for loss, _ in one]


def test_a_search_ends_when_enough_starts_agree():
    corners = 100.0 * np.array([[0, 0], [0, 1], [1, 0]])
    X = corners[np.arange(90) % 3] + rng.normal(size=(90, 2))
    table = StoredDistances(cdist(X, X), np.arange(90))
    assert searched(3, table=table, least=0, agree=8).runs == 8
    assert searched(3, table=table, least=0, agree=9).runs == 16
    assert searched(3, table=table, least=1e5, agree=4).work >= 1e5


def test_a_search_without_agreement_ends_when_its_work_is_done():
    options = {"same": -1.0, "least": 0, "runs": 1000}  # no start agrees with any
    for passes in (20, 60):
        work = searched(6, passes=passes, **options).work / 90**2
        assert passes <= work <= passes + 8 * 10
    assert searched(6, passes=1000, **options | {"runs": 24}).runs == 24


def test_starts_within_the_tolerance_of_the_best_one_agree():
    search = searched(3, runs=4, agree=3, least=0)
    search.starts, search.runs = [10.0, 10.005, 10.02], 3
    search.best = [(10.0, np.arange(3))]
    assert not search.is_over
    search.starts.append(10.009)
    assert search.is_over
    search.best[0] = (9.0, np.arange(3))  # a jump has found a better optimum than all of them
    assert not search.is_over


def test_the_best_few_different_solutions_are_kept():
    search = searched(3, finalists=3)
    search.best = []
    losses = np.array([5.0, 7.0, 5.0, 4.0, 6.0, 4.0])
    search._add(np.arange(18).reshape(6, 3), losses, np.ones(6), losses > 0)
    assert [loss for loss, _ in search.best] == [4.0, 5.0, 6.0]
    np.testing.assert_array_equal(search.best[0][1], [9, 10, 11])


def test_clusters_have_the_same_numbers_with_any_seed():
    one, other = (KMedoids(4, random_state=seed).fit(ROWS).medoid_indices_ for seed in (0, 1))
    np.testing.assert_array_equal(one, other)
    assert (np.diff(TABLE.D[one].sum(axis=1)) > 0).all()


def test_jumps_keep_some_medoids_of_the_best_solution():
    search = searched(6, runs=4)
    best = set(search.best[0][1].tolist())
    medoids, count = search._initial_medoids()
    assert (count[::2] == 0).all()
    assert ((count[1::2] >= 3) & (count[1::2] < 6)).all()
    for r in range(1, len(count), 2):
        assert set(medoids[r, : count[r]].tolist()) <= best
        assert len(set(medoids[r].tolist())) == 6


def test_a_search_ends_where_every_row_is_on_a_medoid():
    corners = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], (4, 1))
    for kind in ("auto", "thorough"):
        assert KMedoids(3, search=kind, random_state=0).fit(corners).inertia_ == 0
    assert searched(3, table=StoredDistances(cdist(corners, corners), np.arange(12)), w=np.ones(12)).runs <= 16


def test_small_tables_are_not_sampled():
    sample = sample_of(TABLE, ONES, 45, rng)
    assert sample.D.base is TABLE.D or sample.D is TABLE.D
    np.testing.assert_array_equal(sample.candidates, np.arange(90))


def test_candidates_of_a_sample_are_rows_of_the_table(monkeypatch):
    w = rng.random(90) + 0.5
    for most in (90, 60):
        monkeypatch.setattr(medoid_search, "OBJECTS", most)
        sample = sample_of(TABLE, w, 20, np.random.default_rng(0))
        assert sample.D.shape == (20, most)
        assert (np.diff(sample.candidates) > 0).all()
        assert (sample.D[np.arange(20), sample.objects] == 0).all()  # each candidate is the object with its number
        if most == 90:
            np.testing.assert_array_equal(sample.D, TABLE.D[sample.candidates])
            np.testing.assert_array_equal(sample.w, w)
            np.testing.assert_array_equal(sample.objects, sample.candidates)


def test_sampled_objects_represent_the_weight_of_all(monkeypatch):
    monkeypatch.setattr(medoid_search, "OBJECTS", 45)
    w = np.where(np.arange(90) == 7, 500.0, 1.0)
    for weights, largest in ((w, 500.0), (ONES, 2.0)):  # a heavy row is always drawn, with its own weight
        sample = sample_of(TABLE, weights, 10, np.random.default_rng(0))
        assert sample.w.sum() == pytest.approx(weights.sum())
        assert sample.w.max() == largest


def test_a_sample_can_have_rows_of_negligible_weight(monkeypatch):
    monkeypatch.setattr(medoid_search, "OBJECTS", 20)
    sample = sample_of(TABLE, np.where(np.arange(90) < 5, 1.0, 5e-324), 10, np.random.default_rng(0))
    assert len(np.unique(sample.candidates)) == len(sample.candidates) == 20
    assert np.isfinite(sample.w).all()


def test_a_callback_ends_a_search():
    search = searched(6, watch=lambda runs, loss: True)
    assert search.runs == 8
    model = KMedoids(6, random_state=0, callback=lambda progress: True).fit(ROWS)
    assert model.n_iter_ == 1


def test_ctrl_c_keeps_the_best_solution_of_a_search(monkeypatch):
    add = Search._add

    def add_and_interrupt(self, *args, **options):
        add(self, *args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "_add", add_and_interrupt)
    with pytest.warns(FitInterruptedWarning):
        model = KMedoids(6, random_state=0).fit(ROWS)
    assert model.history_.shape == (1,)
    assert model.inertia_ == pytest.approx(TABLE.D[model.medoid_indices_].min(axis=0).sum())


def test_a_table_of_fewer_objects_than_candidates_is_searched():
    """As `approximation="sample"` makes them: all rows are candidates, a sample of the rows are objects."""
    objects = np.arange(0, 90, 3)
    table = StoredDistances(TABLE.D[:, objects], objects)
    search = searched(4, table=table, w=np.full(30, 3.0))
    assert not search.is_whole
    for medoids in search.finalists():
        assert set(medoids.tolist()) <= set(objects.tolist())
        state = fasterpam.State(table, np.full(30, 3.0), medoids)
        assert state.loss >= search.best[0][0] * (1 - 1e-12)
