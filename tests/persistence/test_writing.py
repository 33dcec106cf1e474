import os
import stat

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import coterie
from coterie.distances import register
from coterie.errors import DroppedOptionWarning, ModelFileError, ParameterError, RangeWarning
from coterie.families import Poisson
from coterie.persistence import container
from persistence.fitted import COUNTS, X, fitted


@pytest.fixture
def model():
    return fitted("KMeans")[0]


def test_a_file_is_not_replaced_unless_asked(model, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        coterie.save(model, path)
    assert path.read_text() == "mine"
    coterie.save(model, path, overwrite=True)
    assert coterie.load(path).n_clusters == 3
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_a_file_that_appears_meanwhile_is_not_replaced(model, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    encode = container.to_bytes

    def slowly(*content):
        path.write_text("mine")
        return encode(*content)

    monkeypatch.setattr(container, "to_bytes", slowly)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        coterie.save(model, path)
    assert path.read_text() == "mine"
    assert os.listdir(tmp_path) == ["model.safetensors"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_nothing_is_left_of_a_file_that_could_not_be_written(failing, model, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_text("mine")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(container.os, failing, fail)
    with pytest.raises(OSError, match="No space"):
        coterie.save(model, path, overwrite=True)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    assert path.read_text() == "mine"


def test_file_systems_without_links_work(model, tmp_path, monkeypatch):
    def fail(*args):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(container.os, "link", fail)
    coterie.save(model, tmp_path / "model.safetensors")
    assert coterie.load(tmp_path / "model.safetensors").n_clusters == 3
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_the_file_is_readable_as_other_files_are(model, tmp_path):
    before = os.umask(0o022)
    try:
        coterie.save(model, tmp_path / "model.safetensors")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model.safetensors").stat().st_mode) == 0o644


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        coterie.save(model, tmp_path / "model.safetensors")


@pytest.mark.parametrize("name", ["model", "model.pkl", "model.json"])
def test_the_name_says_what_the_file_is(name, model, tmp_path):
    with pytest.raises(ParameterError, match=r"must end in \.safetensors"):
        coterie.save(model, tmp_path / name)


def test_a_folder_is_no_file(model, tmp_path):
    with pytest.raises(ParameterError, match="is a folder"):
        coterie.save(model, tmp_path)
    with pytest.raises(ModelFileError, match="folder"):
        coterie.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="create it first"):
        coterie.save(model, tmp_path / "none" / "model.safetensors")
    with pytest.raises(FileNotFoundError):
        coterie.load(tmp_path / "none.safetensors")


# what cannot be saved


def check_rejected(model, folder, words):
    with pytest.raises(ModelFileError, match=words):
        coterie.save(model, folder / "model.safetensors")
    assert os.listdir(folder) == []


def test_models_that_are_not_fitted_are_rejected(tmp_path):
    with pytest.raises(NotFittedError):
        coterie.save(coterie.KMeans(), tmp_path / "model.safetensors")


def test_models_of_other_libraries_are_rejected(tmp_path):
    check_rejected(PCA(1).fit(X), tmp_path, "estimators of coterie")
    check_rejected({"a": 1}, tmp_path, "estimators of coterie")
    check_rejected(
        make_pipeline(PCA(1), coterie.KMeans(2)).fit(X), tmp_path, "must end in an estimator of coterie, after"
    )

    class KMeans(coterie.KMeans):
        pass

    check_rejected(KMeans(2).fit(X), tmp_path, "estimators of coterie")


def test_models_that_could_not_be_loaded_are_rejected(tmp_path):
    with pytest.warns(RangeWarning, match="cannot be represented"):
        large = coterie.GaussianMixture(2, random_state=0).fit(X * 1e180)
    check_rejected(large, tmp_path, "could not be loaded: GaussianMixture.covariances_ has values that are not finite")
    edited = coterie.KMeans(2, random_state=0).fit(X)
    edited.cluster_centers_ = edited.cluster_centers_[:, :-1]
    check_rejected(edited, tmp_path, "could not be loaded")


def test_functions_are_rejected_with_what_to_do(tmp_path):
    def first_rows(X, n_clusters, random_state):
        return X[:n_clusters]

    model = coterie.KMeans(2, init=first_rows).fit(X)
    check_rejected(model, tmp_path, r"options.init is the function first_rows.*model.set_params\(init=...\)")
    coterie.save(model.set_params(init="k-means++"), tmp_path / "model.safetensors")
    assert coterie.load(tmp_path / "model.safetensors").predict(X).tolist() == model.predict(X).tolist()


def test_a_kernel_distance_or_family_defined_by_the_user_is_rejected(tmp_path):
    def product(A, B):
        return A @ B.T

    def apart(x, y):
        return abs(x[0] - y[0])

    class Own(Poisson):
        pass

    register("apart from files", apart)
    check_rejected(coterie.KernelKMeans(2, kernel=product).fit(X), tmp_path, "product")
    check_rejected(coterie.KMedoids(2, metric=apart).fit(X), tmp_path, "apart|UserDistance")
    check_rejected(coterie.KMedoids(2, metric="apart from files").fit(X), tmp_path, "UserDistance")
    check_rejected(coterie.Mixture(1, Own()).fit(COUNTS), tmp_path, "Own")


def test_a_callback_is_left_out_with_a_warning(tmp_path):
    model = coterie.KMeans(2, callback=lambda progress: None).fit(X)
    with pytest.warns(DroppedOptionWarning, match="callback"):
        coterie.save(model, tmp_path / "model.safetensors")
    assert coterie.load(tmp_path / "model.safetensors").callback is None


def test_attributes_of_others_are_rejected(tmp_path):
    model = coterie.KMeans(2).fit(X)
    model.note = "hello"
    check_rejected(model, tmp_path, "attribute 'note'")


@pytest.mark.parametrize("dtype", [np.float16, np.complex128, "datetime64[s]"])
def test_numbers_that_files_do_not_have_are_rejected(dtype, tmp_path):
    model = coterie.KMeans(2).fit(X)
    model.extra_ = np.zeros(2, dtype)
    check_rejected(model, tmp_path, "extra_ is an array of")
