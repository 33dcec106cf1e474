import json
import warnings
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

import coterie
from coterie.core.stored import CLASSES, stored
from coterie.errors import ModelFileError
from coterie.persistence import classes, container
from persistence.fitted import COUNTS, FRAME, NAMES, UNFITTED, X, fitted
from short_searches import short_searches

ANSWERS = ("predict", "predict_proba", "score_samples", "transform", "score")


def round_trip(model, folder, name="model.safetensors"):
    coterie.save(model, folder / name)
    return coterie.load(folder / name)


def same(a, b) -> bool:
    """Recursively equal, in type and to the last bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape or a.flags.writeable != b.flags.writeable:
            return False
        if np.argsort(a.strides, stable=True).tolist() != np.argsort(b.strides, stable=True).tolist() and a.size > 1:
            return False  # sums may go another way through it
        return a.tolist() == b.tolist() if a.dtype.kind in "OU" else a.tobytes() == b.tobytes()
    if sparse.issparse(a):
        return a.shape == b.shape and same((a.data, a.indices, a.indptr), (b.data, b.indices, b.indptr))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.random.Generator):
        return same(a.bit_generator.state, b.bit_generator.state)
    if isinstance(a, np.random.RandomState):
        return same(a.get_state(legacy=False), b.get_state(legacy=False))
    if hasattr(a, "__dict__"):
        return set(vars(a)) == set(vars(b)) and all(same(vars(a)[key], vars(b)[key]) for key in vars(a))
    return a == b or a != a


def takes_weights(model):
    is_other = isinstance(model, Pipeline) or getattr(model, "method", None) == "diana"
    return not is_other and has_fit_parameter(model, "sample_weight")


def answers(model, rows):
    found = {}
    for verb in ANSWERS:
        if hasattr(model, verb):
            found[verb] = getattr(model, verb)(rows)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_is_the_one_saved(name, tmp_path):
    model, rows = fitted(name)
    again = round_trip(model, tmp_path)
    assert same(again.get_params(deep=False), model.get_params(deep=False))
    assert same(again, model)
    assert same(answers(again, rows), answers(model, rows))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_model_gives_the_same_bytes(name, tmp_path):
    model, _ = fitted(name)
    again = round_trip(model, tmp_path)
    coterie.save(model, tmp_path / "twice.safetensors")
    coterie.save(again, tmp_path / "again.safetensors")
    first = (tmp_path / "model.safetensors").read_bytes()
    assert (tmp_path / "twice.safetensors").read_bytes() == first
    assert (tmp_path / "again.safetensors").read_bytes() == first


@pytest.mark.parametrize("name", [name for name in NAMES if name in UNFITTED and takes_weights(UNFITTED[name][0])])
def test_a_model_is_loaded_if_rows_of_its_fit_have_no_weight(name, tmp_path):
    model, rows = UNFITTED[name]
    weight = np.ones(rows.shape[0] if hasattr(rows, "shape") else len(rows))
    weight[[0, 1, -1]] = 0.0
    with short_searches():
        model = clone(model).fit(rows, sample_weight=weight)
    again = round_trip(model, tmp_path)
    assert same(again, model)
    assert same(answers(again, rows), answers(model, rows))


@pytest.mark.parametrize("name", [name for name in UNFITTED if name == type(UNFITTED[name][0]).__name__])
def test_options_may_be_numbers_of_numpy(name, tmp_path):
    model, rows = UNFITTED[name]
    numbers = {int: np.int64, float: np.float64, bool: np.bool_}
    options = {key: numbers[type(value)](value) for key, value in model.get_params().items() if type(value) in numbers}
    with short_searches():
        model = clone(model).set_params(**options).fit(rows)
    again = round_trip(model, tmp_path)
    assert same(answers(again, rows), answers(model, rows))


def test_all_estimators_are_here():
    estimators = {
        name
        for name in coterie.__all__
        if isinstance(getattr(coterie, name), type) and issubclass(getattr(coterie, name), BaseEstimator)
    }
    assert {name.split()[0] for name in NAMES} == estimators | set(classes.PREPROCESSING)


def test_a_subclass_of_a_stored_class_is_rejected(tmp_path):
    class MyKMeans(coterie.KMeans):
        pass

    with pytest.raises(ModelFileError, match="cannot be saved"):
        coterie.save(MyKMeans(3, random_state=0).fit(X), tmp_path / "model.safetensors")


def test_no_file_contains_the_path_of_a_module(tmp_path):
    modules = {f"{kind.__module__}.".removeprefix("coterie.") for kind in CLASSES.values()}
    assert len(modules) > 30
    for name in NAMES:
        coterie.save(fitted(name)[0], tmp_path / "model.safetensors", overwrite=True)
        content = json.dumps(container.read(tmp_path / "model.safetensors")[0])
        assert [module for module in modules if f'"{module}' in content] == []


def test_two_classes_cannot_share_a_tag():
    with pytest.raises(ValueError, match="already"):

        @stored("online.State")
        class Other:
            pass


@pytest.mark.parametrize("name", ["KMeans frame", "MinMaxScaler", "Mixture frame"])
def test_names_of_columns_are_still_checked(name, tmp_path):
    model, rows = fitted(name)
    again = round_trip(model, tmp_path)
    with pytest.raises(ValueError, match=r"lacks the column|feature names should match"):
        again.predict(rows[rows.columns[:-1]].rename(columns={rows.columns[0]: "other"}))


@pytest.mark.parametrize("name", ["MiniBatchKMeans", "GaussianMixture VVV", "Mixture poisson"])
def test_partial_fit_continues_after_load(name, tmp_path):
    model, rows = fitted(name)
    again, model = round_trip(model, tmp_path), deepcopy(model)
    for batch in (rows[:40], rows[40:]):
        model.partial_fit(batch)
        again.partial_fit(batch)
    assert same(again, model)


@pytest.mark.parametrize("name", ["KMeans generator", "KMeans random state"])
def test_random_generators_continue_after_load(name, tmp_path):
    model, rows = fitted(name)
    again, model = round_trip(model, tmp_path), deepcopy(model)
    assert same(again.fit(rows), model.fit(rows))


def test_a_fit_after_load_is_a_fit(tmp_path):
    model, rows = fitted("GaussianMixture VEV")
    assert same(round_trip(model, tmp_path).fit(rows), deepcopy(model).fit(rows))


def test_arrays_have_the_names_of_their_attributes(tmp_path):
    from safetensors.numpy import load_file

    model, _ = fitted("MiniBatchKMeans")
    coterie.save(model, tmp_path / "model.safetensors")
    arrays = load_file(tmp_path / "model.safetensors")
    assert arrays["cluster_centers_"].tolist() == model.cluster_centers_.tolist()
    assert "_state.params" not in arrays  # the same array is in the file once


def test_set_output_is_remembered(tmp_path):
    model = coterie.KMeans(2, random_state=0).set_output(transform="pandas").fit(FRAME)
    assert round_trip(model, tmp_path).transform(FRAME).equals(model.transform(FRAME))


def test_big_endian_arrays_are_converted(tmp_path):
    model = coterie.KMeans(2, init=COUNTS[:2].astype(">f8")).fit(COUNTS)
    again = round_trip(model, tmp_path)
    assert again.init.dtype == np.float64
    assert again.init.tolist() == COUNTS[:2].tolist()


def test_a_model_of_dask_rows_is_saved_with_its_labels(tmp_path):
    array = pytest.importorskip("dask.array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = coterie.KMeans(3, random_state=0).fit(array.from_array(X, chunks=(30, 3)))
    assert np.asarray(round_trip(model, tmp_path).labels_).tolist() == np.asarray(model.labels_).tolist()
