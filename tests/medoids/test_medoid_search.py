"""Search of K-medoids: many descents from independent starts and from jumps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from coterie import KMedoids
from coterie.core.search import Pool, search
from coterie.errors import FitInterruptedWarning, ParameterError
from coterie.medoids import fasterpam, medoid_search
from coterie.medoids.distance_table import StoredDistances
from coterie.medoids.medoid_search import MedoidProblem, sample_of

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(90, 2)) * [1.0, 4.0] + 6.0 * rng.integers(4, size=(90, 1))
TABLE, ONES = StoredDistances(cdist(ROWS, ROWS), np.arange(90)), np.ones(90)


def problem_of(k, *, table=TABLE, w=ONES, seed=0, kind="auto"):
    return MedoidProblem(table, w, k, False, kind, 100, np.random.default_rng(seed), 1)


def searched(k, *, watch=lambda *_: False, changed=None, **options):
    problem = problem_of(k, **options)
    return problem, search(problem, replace(problem.effort, **changed or {}), watch)


def test_the_default_is_as_good_as_the_best_of_many_starts():
    for seed, k in enumerate((2, 5, 9)):
        many = KMedoids(k, search="none", n_init=30, random_state=1).fit(ROWS).inertia_
        assert KMedoids(k, random_state=seed).fit(ROWS).inertia_ <= 1.005 * many


@pytest.mark.parametrize("options", [{}, {"objective": "silhouette"}, {"metric": "precomputed"}], ids=str)
def test_a_sample_of_the_candidates_leads_to_the_clusters_of_all_rows(options, monkeypatch):
    monkeypatch.setattr(medoid_search, "CANDIDATES", {"auto": 30})
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
    _, one = searched(6)
    monkeypatch.setattr(medoid_search, "SLICE", 100)
    _, other = searched(6)
    np.testing.assert_array_equal(one.params, other.params)
    np.testing.assert_array_equal(one.objective, other.objective)


def test_a_search_ends_when_enough_starts_agree():
    corners = 100.0 * np.array([[0, 0], [0, 1], [1, 0]])
    X = corners[np.arange(90) % 3] + rng.normal(size=(90, 2))
    table = StoredDistances(cdist(X, X), np.arange(90))
    for agree, hits in ((8, 8), (9, 16)):
        _, pool = searched(3, table=table, changed={"agree": agree, "batch": 8})
        assert pool.hits.tolist() == [hits]


def test_a_search_without_agreement_ends_when_its_work_is_done():
    for passes in (20, 60):
        changed = {"same": -1.0, "agree": 1000, "jumps": 1000, "runs": 0.0, "work": passes * 90**2}
        problem, _ = searched(6, changed=changed)
        assert passes <= problem.work / 90**2 <= passes + 8 * 10


def test_the_best_few_different_solutions_are_kept():
    _, pool = searched(6, changed={"agree": 1000, "same": 1e-9, "solutions": 3})
    assert len(pool.objective) == 3
    assert (np.diff(pool.objective) > 0).all()


def test_clusters_have_the_same_numbers_with_any_seed():
    one, other = (KMedoids(4, random_state=seed).fit(ROWS).medoid_indices_ for seed in (0, 1))
    np.testing.assert_array_equal(one, other)
    assert (np.diff(TABLE.D[one].sum(axis=1)) > 0).all()


def test_jumps_keep_some_medoids_of_the_best_solution():
    problem, pool = searched(6)
    best = set(pool.params[0].tolist())
    n_kept = [len(best.intersection(medoids.tolist())) for _ in range(10) for medoids in problem.jump(pool)]
    assert min(n_kept) >= 3
    assert sum(count < 6 for count in n_kept) > 0.8 * len(n_kept)  # a draw may repeat the medoid that was removed
    assert all(len(set(medoids.tolist())) == 6 for medoids in problem.jump(pool))


def test_a_search_ends_where_every_row_is_on_a_medoid():
    corners = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], (4, 1))
    for kind in ("auto", "thorough"):
        assert KMedoids(3, search=kind, random_state=0).fit(corners).inertia_ == 0
    table = StoredDistances(cdist(corners, corners), np.arange(12))
    problem, pool = searched(3, table=table, w=np.ones(12), kind="thorough")
    assert pool.hits.sum() <= problem.effort.batch


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
    problem, pool = searched(6, watch=lambda pool, share: True)
    assert pool.hits.sum() <= problem.effort.batch
    model = KMedoids(6, random_state=0, callback=lambda progress: True).fit(ROWS)
    assert model.n_iter_ == 1


def test_ctrl_c_keeps_the_best_solution_of_a_search():
    def interrupt(progress):
        raise KeyboardInterrupt

    with pytest.warns(FitInterruptedWarning):
        model = KMedoids(6, random_state=0, callback=interrupt).fit(ROWS)
    assert model.history_.shape == (1,)
    assert model.inertia_ == pytest.approx(TABLE.D[model.medoid_indices_].min(axis=0).sum())


def test_finalists_of_a_sample_are_the_solutions_that_are_almost_as_good():
    objects = np.arange(0, 90, 3)
    problem = problem_of(3, table=StoredDistances(TABLE.D[:, objects], objects), w=np.full(30, 3.0))
    medoids, zeros = np.arange(9).reshape(3, 3), np.zeros(3, int)
    pool = Pool(medoids, np.array([10.0, 10.4, 11.0]), zeros, zeros)
    assert [set(finalist) for finalist in problem.finalists(pool)] == [{0, 3, 6}, {9, 12, 15}]


def test_a_table_of_fewer_objects_than_candidates_is_searched():
    """As `approximation="sample"` makes them: all rows are candidates, a sample of the rows are objects."""
    objects = np.arange(0, 90, 3)
    table = StoredDistances(TABLE.D[:, objects], objects)
    problem, pool = searched(4, table=table, w=np.full(30, 3.0))
    assert not problem.is_whole
    for medoids in problem.finalists(pool):
        assert set(medoids.tolist()) <= set(objects.tolist())
        state = fasterpam.State(table, np.full(30, 3.0), medoids)
        assert state.loss >= pool.objective[0] * (1 - 1e-12)
