"""Mixtures that find the number of their components: planted ones, well-known tables, and what must hold on the way."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp

import zoo
from coterie import Mixture
from coterie.core import loop
from coterie.core.nested_arrays import select
from coterie.core.protocols import Chunk
from coterie.data import memory
from coterie.data.memory import MemorySource
from coterie.engines.local import Serial
from coterie.errors import ParameterError
from coterie.families import Bernoulli, Gaussian, Poisson, Product
from coterie.metrics import adjusted_rand_score
from coterie.mixture.dirichlet_process import search, with_conjugate_prior
from coterie.mixture.split_merge_search import SplitMergeSearch
from coterie.mixture.variational import StickBreaking
from families.cases import learned
from mixture.rows import islands
from reference.shared_data import load


def planted(kind, k, n=1500, seed=0):
    """Rows of a mixture of so many components, and the component of each."""
    rng = np.random.default_rng(seed)
    z = rng.integers(k, size=n)
    if kind == "poisson":
        return rng.poisson(rng.gamma(2.0, 4.0, (k, 6))[z]).astype(float), z
    if kind == "exponential":
        return rng.exponential(10.0 ** rng.uniform(-1.5, 1.5, (k, 8))[z]), z
    if kind == "bernoulli":
        return (rng.random((n, 15)) < rng.beta(0.4, 0.4, (k, 15))[z]).astype(float), z
    if kind == "categorical":
        until = rng.dirichlet(np.full(4, 0.4), (k, 10)).cumsum(axis=2)[z]
        return (rng.random((n, 10))[..., None] > until).sum(axis=2).clip(0, 3).astype(float), z
    if kind == "multinomial":
        return sparse.csr_array(rng.multinomial(60, rng.dirichlet(np.full(150, 0.05), k)[z]).astype(float)), z
    centers = 7.0 * rng.permutation(np.array(np.meshgrid(*[range(3)] * 2)).reshape(2, -1).T)[:k]
    return rng.normal(size=(n, 2)) + centers[z], z


# what it finds


@pytest.mark.whole_search
@pytest.mark.parametrize("kind", ["poisson", "exponential", "bernoulli", "categorical", "multinomial", "gaussian"])
@pytest.mark.parametrize("k", [1, 4])
def test_as_many_components_are_found_as_were_planted(kind, k):
    X, z = planted(kind, k)
    model = Mixture("auto", kind, random_state=0).fit(X)
    assert model.n_components_ == k
    assert adjusted_rand_score(z, model.labels_) > 0.85
    assert model.counts_.sum() == pytest.approx(len(z))
    assert (np.diff(model.counts_) <= 0).all()


CLEAR = [
    ("sipu", "r15", 15),
    ("sipu", "s1", 15),
    ("sipu", "a1", 20),
    ("sipu", "unbalance", 8),
    ("fcps", "hepta", 7),
    ("fcps", "tetra", 4),
    ("g2mg", "g2mg_2_30", 2),
    ("r", "ruspini", 4),
    ("r", "xclara", 3),
    ("graves", "line", 2),
    ("graves", "dense", 2),
]


@pytest.mark.whole_search
@pytest.mark.parametrize("folder, name, k", CLEAR, ids=[name for _, name, _ in CLEAR])
def test_the_groups_of_well_known_tables_are_found(folder, name, k):
    X = load(f"{folder}/{name}")
    assert Mixture("auto", "gaussian", random_state=0).fit(X).n_components_ == k


@pytest.mark.whole_search
def test_rows_without_groups_are_divided_into_few():
    X = np.random.default_rng(0).random((1000, 2))
    assert Mixture("auto", "gaussian", random_state=0).fit(X).n_components_ <= 10


def test_units_and_places_of_the_columns_change_nothing():
    X, _ = planted("gaussian", 4, n=400)
    here = Mixture("auto", "gaussian", random_state=0).fit(X)
    there = Mixture("auto", "gaussian", random_state=0).fit(X * [1e-3, 1e4] + [1e6, -5.0])
    np.testing.assert_array_equal(here.labels_, there.labels_)
    assert here.lower_bound_ - there.lower_bound_ == pytest.approx(400 * np.log(10.0), rel=1e-6)


def test_missing_values_drop_out():
    X, _ = planted("bernoulli", 3)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    model = Mixture("auto", "bernoulli", missing="ignore", random_state=0).fit(X)
    assert model.n_components_ == 3
    X, _ = planted("gaussian", 4, n=600)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    X = X[~np.isnan(X).all(axis=1)]
    assert Mixture("auto", Gaussian("diag"), missing="ignore", random_state=0).fit(X).n_components_ == 4


def test_tables_of_mixed_columns_have_their_number_too():
    counts, z = planted("poisson", 3, n=800)
    rng = np.random.default_rng(5)
    X = np.c_[counts, rng.random((800, 6)) < np.array([[0.1], [0.5], [0.9]])[z]]
    family = [("poisson", range(6)), ("bernoulli", range(6, 12))]
    assert Mixture("auto", Product(family), random_state=0).fit(X).n_components_ == 3


# what must hold


@pytest.mark.parametrize("kind", ["poisson", "gaussian"])
def test_the_bound_never_falls(kind):
    X, _ = planted(kind, 5, n=800)
    model = Mixture("auto", kind, random_state=0).fit(X)
    moves = [move.lower_bound for move in model.moves_]
    assert np.all(np.diff(moves) > 0)
    history = model.history_.lower_bound
    assert np.all(np.diff(history) >= -1e-12 * np.abs(history[1:]))
    assert model.lower_bound_ == history[-1]
    assert history[0] >= moves[-1] - 1e-9 * abs(moves[-1])


def exact(family, X, alpha, resp):
    """The bound by its definition: expected log joint, and the entropies of all that is believed."""
    counts = resp.sum(axis=0)
    parts = family.statistics(None, family.features(X), resp)
    scores = family.scores(family.expected(parts), family.features(X)) + family.row_base(X)[:, None]
    sticks = StickBreaking(alpha)
    after = sticks.posterior(counts)
    joint = scores + sticks.expected_log(after)
    entropy = -(resp * np.log(np.maximum(resp, 1e-300))).sum()
    return (resp * joint).sum() + entropy - sticks.divergence(after), parts, scores


@pytest.mark.parametrize("family", [Poisson("default"), Bernoulli("default")])
def test_the_bound_of_responsibilities_is_that_of_its_definition(family):
    """KL(q(theta) || prior) = E_q[log p(rows | theta)] - log evidence: sampled here, in closed form there."""
    X, _ = planted("poisson" if isinstance(family, Poisson) else "bernoulli", 2, n=40)
    family = family.learned(family.survey(X))
    resp = np.random.default_rng(0).dirichlet([3.0, 2.0], size=40)
    resp = resp[:, np.argsort(-resp.sum(axis=0))]
    base, parts, scores = exact(family, X, 0.8, resp)
    divergence = (resp * (scores - family.row_base(X)[:, None])).sum() - family.log_evidence(parts).sum()
    state = SplitMergeSearch(family, StickBreaking(0.8), Chunk(X, None, 0)).state(resp)
    assert divergence > 0
    assert state.bound == pytest.approx(base - divergence, rel=1e-10)


def test_the_bound_is_below_the_evidence_of_all_divisions():
    """Five counts in a Dirichlet process: the evidence is a sum over all 52 ways to divide them."""
    X = np.array([[0.0], [1.0], [12.0], [15.0], [1.0]])
    family = Poisson("default").learned(Poisson().survey(X))
    alpha, base = 1.0, family.row_base(X).sum()

    def partitions(n):
        if n == 0:
            yield []
            return
        for smaller in partitions(n - 1):
            for block in range(len(smaller)):
                yield [*smaller[:block], [*smaller[block], n - 1], *smaller[block + 1 :]]
            yield [*smaller, [n - 1]]

    every = []
    for blocks in partitions(5):
        seating = len(blocks) * np.log(alpha) + sum(gammaln(len(block)) for block in blocks)
        seating += gammaln(alpha) - gammaln(alpha + 5)
        resp = np.array([[i in block for block in blocks] for i in range(5)], dtype=float)
        every.append(seating + family.log_evidence(family.statistics(None, X, resp)).sum() + base)
    assert len(every) == 52
    model = Mixture("auto", Poisson("default"), random_state=0).fit(X)
    assert logsumexp(every) - 3 < model.lower_bound_ < logsumexp(every)


def search_on(X, family=None, w=None):
    family = Gaussian() if family is None else family
    return SplitMergeSearch(with_conjugate_prior(learned(family, X)), StickBreaking(1.0), Chunk(X, w, 0))


def test_the_estimated_gain_of_a_merge_is_exact():
    X, z = islands()
    searcher = search_on(X)
    three = (z[:, None] == np.arange(3)).astype(float)
    share = np.random.default_rng(0).random(60)
    four = searcher.state(np.c_[three[:, :2], three[:, 2] * share, three[:, 2] * (1 - share)])
    merged = searcher.state(three)
    (gain, a, b), *_ = searcher._merge_candidates(four)
    assert four.counts[[a, b]].sum() == pytest.approx(20)
    assert gain == pytest.approx(merged.bound - four.bound, rel=1e-9)
    assert gain > 0
    union = searcher.family.log_evidence(select(four.parts, [a]) + select(four.parts, [b]))
    np.testing.assert_allclose(union, searcher.family.log_evidence(merged.parts)[merged.resp[-1] == 1])


def test_the_estimated_gain_of_a_split_is_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2)) + np.repeat([[0, 0], [4, 0], [30, 0]], 30, axis=0)
    searcher = search_on(X)
    state = searcher.state(np.repeat([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 30, axis=0))
    gain, half = searcher._best_split(state, 0, np.random.default_rng(0))
    split = searcher.state(np.c_[state.resp[:, 0] - half, state.resp[:, 1], half])
    assert gain == pytest.approx(split.bound - state.bound, rel=1e-9)
    assert ((half > 0.01) & (half < 0.99)).any()  # the entropy of rows between the halves is counted


@pytest.mark.parametrize("seed", range(8))
def test_no_move_lowers_the_bound_of_overlapping_components(seed):
    rng = np.random.default_rng(seed)
    X = 1.5 * rng.normal(size=(6, 2))[rng.integers(6, size=60)] + rng.normal(size=(60, 2))
    searcher = search_on(X)
    state = searcher.converged(searcher.state(rng.dirichlet(np.full(8, 0.1), size=60)))
    result, moves = searcher.ascend(state, rng)
    bounds = [move.lower_bound for move in moves]
    assert bounds[0] == state.bound
    assert np.all(np.diff(bounds) > 0)
    assert result.bound == bounds[-1]
    assert len(result.counts) == moves[-1].n_components


def test_no_order_of_the_components_is_better_than_the_larger_first():
    counts = np.array([7.0, 0.5, 3.0, 20.0])
    every = {order: StickBreaking(0.6).log_evidence(counts[list(order)]) for order in permutations(range(4))}
    assert max(every, key=every.get) == (3, 0, 2, 1)
    X, _ = planted("poisson", 3, n=300)
    state = search_on(X, Poisson()).state(np.random.default_rng(0).dirichlet([1.0, 5.0, 2.0], size=300))
    assert (np.diff(state.counts) < 0).all()
    model = zoo.process(4, Poisson(), X)
    c = model.init(MemorySource(X), Serial(), np.random.default_rng(0))
    assert (np.diff(c.counts) <= 0).all()


@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
def test_any_number_of_threads_gives_the_same_bits(kind, monkeypatch):
    monkeypatch.setattr(memory, "SMALL_PART", 1 << 12)
    X, _ = planted(kind, 3, n=2000)
    assert len(memory.part_bounds(*X.shape, 8)) > 4
    alone = Mixture("auto", kind, random_state=1, engine="serial").fit(X)
    many = Mixture("auto", kind, random_state=1, engine="threads", n_jobs=3).fit(X)
    assert alone.lower_bound_ == many.lower_bound_
    np.testing.assert_array_equal(alone.weights_, many.weights_)
    np.testing.assert_array_equal(alone.labels_, many.labels_)


def test_weight_two_is_the_row_twice_and_weight_zero_no_row():
    X, z = planted("gaussian", 4, n=400)
    w = np.random.default_rng(9).integers(0, 3, size=400)
    resp = (z[:, None] == np.arange(4)).astype(float)
    heavy, plain = search_on(X, w=w.astype(float)), search_on(X)
    often = SplitMergeSearch(plain.family, plain.sticks, Chunk(np.repeat(X, w, axis=0), None, 0))
    a, b = heavy.converged(heavy.state(resp)), often.converged(often.state(np.repeat(resp, w, axis=0)))
    assert a.bound == pytest.approx(b.bound, rel=1e-10)
    weighted = Mixture("auto", "gaussian", random_state=0, tol=1e-6).fit(X, sample_weight=w)
    repeated = Mixture("auto", "gaussian", random_state=0, tol=1e-6).fit(np.repeat(X, w, axis=0))
    assert weighted.n_components_ == repeated.n_components_ == 4
    assert weighted.counts_.sum() == pytest.approx(w.sum())
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-8)


def test_more_rows_than_the_sample_are_all_used(monkeypatch):
    monkeypatch.setattr("coterie.mixture.dirichlet_process.SAMPLE_ROWS", 500)
    X, z = planted("gaussian", 4, n=3000)
    model = Mixture("auto", "gaussian", random_state=0).fit(X)
    assert model.n_components_ == 4
    assert model.counts_.sum() == pytest.approx(3000)
    assert adjusted_rand_score(z, model.labels_) > 0.99


def test_the_search_and_the_model_agree_on_the_bound():
    X, _ = planted("poisson", 3, n=500)
    family = Poisson().learned(Poisson().survey(X))
    source = MemorySource(X, chunk_rows=100)
    model, moves = search(family, source, np.random.default_rng(0))
    result = loop.fit(model, source, Serial(), rng=np.random.default_rng(0))
    assert model.n_components == 3
    assert result.history[0] <= -moves[-1].lower_bound + 1e-6
    assert result.objective == pytest.approx(-moves[-1].lower_bound, abs=0.01)


# as an estimator


def test_answers_are_those_of_a_mixture():
    X, _ = planted("poisson", 3)
    model = Mixture("auto", "poisson", random_state=0).fit(X)
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(proba.argmax(axis=1), model.labels_)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert model.components_.rate.shape == (3, 6)
    rows, labels = model.sample(5000)
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), rtol=0.1)
    assert set(labels) == {0, 1, 2}
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), proba)


def test_the_parameters_are_near_those_of_as_many_components_by_em():
    X, _ = planted("poisson", 4)
    found = Mixture("auto", "poisson", random_state=0).fit(X)
    plain = Mixture(found.n_components_, "poisson", init_params=found.labels_).fit(X)
    np.testing.assert_allclose(found.components_.rate, plain.components_.rate, rtol=0.1, atol=0.05)


@pytest.mark.parametrize(
    "family, options, said",
    [
        ("poisson", {"n_components": "many"}, "n_components must be"),
        ("poisson", {"e_step": "hard"}, "needs e_step='soft'"),
        ("poisson", {"concentration": 0.0}, "concentration"),
        ("student_t", {}, "conjugate"),
        (Gaussian("VEV"), {}, "'full' or 'diag'"),
        (Product([("poisson", [0]), ("student_t", [1])]), {}, "StudentT has none"),
    ],
)
def test_what_cannot_be_is_named(family, options, said):
    X = np.random.default_rng(0).poisson(3.0, (40, 2)).astype(float)
    with pytest.raises(ParameterError, match=said):
        Mixture(family=family, **({"n_components": "auto"} | options)).fit(X)


@pytest.mark.parametrize(
    "X",
    [np.ones((20, 2)), np.c_[np.arange(20.0), np.ones(20)], np.zeros((1, 2)), zoo.SMALL[:5], 1e9 + zoo.SMALL[:50]],
    ids=["one-point", "constant-column", "one-row", "few-rows", "far"],
)
def test_hostile_rows_give_a_sound_mixture(X):
    model = Mixture("auto", "gaussian", random_state=0).fit(X)
    assert 1 <= model.n_components_ <= len(X)
    assert np.isfinite(model.lower_bound_)
    assert np.isfinite(model.predict_proba(X)).all()
