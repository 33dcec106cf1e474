"""Files of older formats load, and give the same results. Those of format 1 were written before there were tags."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import coterie
from coterie.core.stored import CLASSES
from coterie.errors import ModelFileError
from coterie.persistence import classes, container, older_formats
from persistence.fitted import FITTED, MIXED, UNFITTED, X

ARCHIVE = zipfile.ZipFile(Path(__file__).parent / "data" / "format_1.zip")
NAMES = sorted(Path(name).stem for name in ARCHIVE.namelist() if name.endswith(".safetensors"))
WITH_DISTANCES = [name for name in NAMES if name.split()[0] in ("AgglomerativeClustering", "KMedoids")]


def rows_of(name):
    return MIXED if name in FITTED else UNFITTED[name][1]


def results_of(name):
    with np.load(io.BytesIO(ARCHIVE.read(f"{name}.npz"))) as results:
        return dict(results)


def content_of(name, folder, monkeypatch):
    """Content and arrays as they are in the file."""
    (folder / "old.safetensors").write_bytes(ARCHIVE.read(f"{name}.safetensors"))
    with monkeypatch.context() as patch:
        patch.setattr(older_formats, "upgraded", lambda content, tensors, version: content)
        return container.read(folder / "old.safetensors")


def loaded(content, tensors, folder, monkeypatch, version=1):
    """The model of a file of an older format with this content."""
    with monkeypatch.context() as patch:
        patch.setattr(container, "FORMAT", version)
        (folder / "changed.safetensors").write_bytes(container.to_bytes(content, tensors))
    return coterie.load(folder / "changed.safetensors")


def records(node):
    """Every record in the content of a file, with its tag."""
    if isinstance(node, dict):
        if "record" in node:
            yield node["record"], node["fields"]
        for value in node.values():
            yield from records(value)
    elif isinstance(node, list):
        for value in node:
            yield from records(value)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_format_1_gives_the_same_results(name, tmp_path):
    (tmp_path / "old.safetensors").write_bytes(ARCHIVE.read(f"{name}.safetensors"))
    model = coterie.load(tmp_path / "old.safetensors")
    for method, expected in results_of(name).items():
        np.testing.assert_allclose(getattr(model, method)(rows_of(name)), expected, rtol=1e-10, atol=1e-10)
    coterie.save(model, tmp_path / "new.safetensors")
    again = coterie.load(tmp_path / "new.safetensors")
    np.testing.assert_array_equal(again.predict(rows_of(name)), results_of(name)["predict"])


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_format_2_gives_the_same_results(name, tmp_path, monkeypatch):
    """Format 2 had tags, but the same names of fields."""
    content, tensors = content_of(name, tmp_path, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(older_formats, "RENAMED", {})
        patch.setattr(older_formats, "ADDED", {})
        content = older_formats.upgraded(content, tensors, 1)
    model = loaded(content, tensors, tmp_path, monkeypatch, version=2)
    for method, expected in results_of(name).items():
        np.testing.assert_allclose(getattr(model, method)(rows_of(name)), expected, rtol=1e-10, atol=1e-10)


def test_every_tag_of_today_that_format_1_had_is_known():
    for package in classes.PACKAGES:
        classes._import_modules(package)
    assert set(older_formats.TAGS.values()) <= set(CLASSES)
    assert len(set(older_formats.TAGS.values())) == len(older_formats.TAGS)


@pytest.mark.parametrize("name", WITH_DISTANCES)
def test_fields_that_older_versions_did_not_write_get_their_defaults(name, tmp_path, monkeypatch):
    content, tensors = content_of(name, tmp_path, monkeypatch)
    for _, fields in records(content):
        for field in ("exponent_", "pseudo_inverse"):
            fields.pop(field, None)
    model = loaded(content, tensors, tmp_path, monkeypatch)
    np.testing.assert_array_equal(model.predict(rows_of(name)), results_of(name)["predict"])


def test_options_that_were_added_since_take_their_defaults(tmp_path, monkeypatch):
    content, tensors = content_of("KMeans", tmp_path, monkeypatch)
    del content["options"]["search"], content["options"]["metric_weights"]
    model = loaded(content, tensors, tmp_path, monkeypatch)
    assert model.search == coterie.KMeans().search
    assert model.metric_weights is None


def older_mahalanobis(factor, folder, monkeypatch):
    """A file from before the whitening: it stored the Cholesky factor of the covariance."""
    content, tensors = content_of("KMedoids mahalanobis", folder, monkeypatch)
    fields = content["state"]["_medoids"]["fields"]["distance"]["fields"]
    for field in ("origin_", "whitening_"):
        del tensors[fields.pop(field)["array"]]
    del fields["exponent_"], fields["pseudo_inverse"]
    fields["factor_"] = {"array": "_medoids.distance.factor_"}
    tensors["_medoids.distance.factor_"] = factor
    tensors["_medoids.A"] = np.linalg.solve(factor, tensors["cluster_centers_"].T).T.copy()
    return content, tensors


def test_the_cholesky_factor_of_mahalanobis_distances_becomes_a_whitening(tmp_path, monkeypatch):
    content, tensors = older_mahalanobis(np.linalg.cholesky(np.cov(X.T)), tmp_path, monkeypatch)
    model, expected = loaded(content, tensors, tmp_path, monkeypatch), results_of("KMedoids mahalanobis")
    np.testing.assert_array_equal(model.predict(X), expected["predict"])
    np.testing.assert_allclose(model.transform(X), expected["transform"], rtol=1e-9, atol=1e-9)


def test_a_factor_that_is_malformed_or_of_another_version_is_rejected(tmp_path, monkeypatch):
    content, tensors = older_mahalanobis(np.linalg.cholesky(np.cov(X.T)), tmp_path, monkeypatch)
    fields = content["state"]["_medoids"]["fields"]["distance"]["fields"]
    fields["origin_"] = None
    with pytest.raises(ModelFileError, match="fields of two versions"):
        loaded(content, tensors, tmp_path, monkeypatch)
    del fields["origin_"]
    for factor in (np.zeros((3, 3)), np.full((3, 3), np.nan), np.ones((2, 3)), np.ones(3), np.eye(4)):
        with pytest.raises(ModelFileError):
            loaded(content, tensors | {"_medoids.distance.factor_": factor}, tmp_path, monkeypatch)
    fields["factor_"] = "text"
    with pytest.raises(ModelFileError):
        loaded(content, {key: value for key, value in tensors.items() if "factor_" not in key}, tmp_path, monkeypatch)


def test_the_inverse_variances_of_standardised_distances_become_deviations():
    node = {"record": "distance.StandardizedEuclidean", "fields": {"V": None, "weights_": {"array": "a"}}}
    tensors = {"a": np.array([0.25, 0.0, 4.0])}
    upgraded = older_formats.upgraded(node, tensors, 2)
    assert upgraded["fields"] == {"V": None, "deviations_": {"array": "a"}}
    np.testing.assert_array_equal(tensors["a"], [2.0, 0.0, 0.5])
