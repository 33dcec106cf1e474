"""Files that older versions wrote: they had fewer fields, and one that is stored differently today."""

import numpy as np
import pytest

import coterie
from coterie.core.errors import ModelFileError
from coterie.files import container, older
from files.fitted import X, fitted

OF_DISTANCES = (
    "AgglomerativeClustering", "AgglomerativeClustering cosine", "DivisiveClustering", "KMedoids correlation",
    "KMedoids cosine", "KMedoids euclidean", "KMedoids sqeuclidean",
)  # fmt: skip


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


def content_of(name, folder):
    coterie.save(fitted(name)[0], folder / "model.safetensors", overwrite=True)
    return container.read(folder / "model.safetensors")


def loaded(content, tensors, folder):
    (folder / "older.safetensors").write_bytes(container.to_bytes(content, tensors))
    return coterie.load(folder / "older.safetensors")


@pytest.mark.parametrize("name", OF_DISTANCES)
def test_fields_that_were_added_since_take_the_value_that_means_the_same(name, tmp_path):
    model, rows = fitted(name)
    content, tensors = content_of(name, tmp_path)
    lacking = [fields for tag, fields in records(content) if tag in older.ADDED]
    assert lacking
    for fields in lacking:
        for field in ("exponent_", "pseudo_inverse"):
            fields.pop(field, None)
    np.testing.assert_array_equal(loaded(content, tensors, tmp_path).predict(rows), model.predict(rows))


def test_options_that_were_added_since_take_their_defaults(tmp_path):
    content, tensors = content_of("KMeans", tmp_path)
    del content["options"]["search"], content["options"]["metric_weights"]
    again = loaded(content, tensors, tmp_path)
    assert again.search == coterie.KMeans().search
    assert again.metric_weights is None


def older_mahalanobis(folder, factor):
    """A file as it was when the Cholesky factor of the covariance was stored, and rows were not moved."""
    content, tensors = content_of("KMedoids mahalanobis", folder)
    fields = content["state"]["_medoids"]["fields"]["distance"]["fields"]
    for field in ("origin_", "whitening_"):
        del tensors[fields.pop(field)["array"]]
    del fields["exponent_"], fields["pseudo_inverse"]
    fields["factor_"] = {"array": "_medoids.distance.factor_"}
    tensors["_medoids.distance.factor_"] = factor
    tensors["_medoids.A"] = np.linalg.solve(factor, tensors["cluster_centers_"].T).T.copy()
    return content, tensors


def test_the_cholesky_factor_of_mahalanobis_distances_becomes_a_whitening(tmp_path):
    model, _ = fitted("KMedoids mahalanobis")
    content, tensors = older_mahalanobis(tmp_path, np.linalg.cholesky(np.cov(X.T)))
    again = loaded(content, tensors, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.transform(X), model.transform(X), rtol=1e-9, atol=1e-9)


def test_a_factor_that_is_none_or_of_another_version_is_rejected(tmp_path):
    content, tensors = older_mahalanobis(tmp_path, np.linalg.cholesky(np.cov(X.T)))
    fields = content["state"]["_medoids"]["fields"]["distance"]["fields"]
    fields["origin_"] = None
    with pytest.raises(ModelFileError, match="fields of two versions"):
        loaded(content, tensors, tmp_path)
    del fields["origin_"]
    for factor in (np.zeros((3, 3)), np.full((3, 3), np.nan), np.ones((2, 3)), np.ones(3), np.eye(4)):
        with pytest.raises(ModelFileError):
            loaded(content, tensors | {"_medoids.distance.factor_": factor}, tmp_path)
    fields["factor_"] = "text"
    with pytest.raises(ModelFileError):
        loaded(content, {key: value for key, value in tensors.items() if "factor_" not in key}, tmp_path)
