import json
import pickle
import re
import struct
import tracemalloc
import warnings
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save as to_safetensors
from sklearn.exceptions import NotFittedError

import coterie
from coterie.errors import InputError, ModelFileError, ParameterError, RangeWarning
from coterie.persistence import container
from persistence.fitted import NAMES, fitted
from persistence.test_round_trip import same

FORGED = (
    "KMeans", "MiniBatchKMeans", "BisectingKMeans", "KernelKMeans sparse", "KernelKMeans nystrom", "KMedoids euclidean",
    "KMedoids series", "TimeSeriesKMeans lengths", "GaussianMixture VVI", "Mixture frame", "Mixture auto",
    "AgglomerativeClustering average", "DivisiveClustering", "DivisiveClustering bisecting", "StandardScaler",
    "KMedoids mixed", "Mixture student_t",
)  # fmt: skip
HURRIED = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def written(name, folder) -> Path:
    path = folder / f"{name}.safetensors"
    if not path.exists():
        coterie.save(fitted(name)[0], path)
    return path


def changed(folder, data: bytes) -> Path:
    path = folder / "changed.safetensors"
    path.write_bytes(data)
    return path


def forged(folder, content, tensors=None) -> Path:
    """A forged file with a valid checksum."""
    return changed(folder, container.to_bytes(content, {} if tensors is None else tensors))


def load_or_refuse(path):
    """The model, or None if it is rejected; any other error fails the test."""
    with suppress(ModelFileError):
        return coterie.load(path)
    return None


# damage


def test_a_flipped_bit_changes_nothing_or_is_rejected(folder):
    model, _ = fitted("KMeans")
    data = written("KMeans", folder).read_bytes()
    for i in range(len(data)):
        flipped = data[:i] + bytes([data[i] ^ (1 << i % 8)]) + data[i + 1 :]
        found = load_or_refuse(changed(folder, flipped))
        assert found is None or same(found, model)


def test_a_file_cut_short_is_rejected(folder):
    data = written("KMeans", folder).read_bytes()
    for length in range(len(data)):
        with pytest.raises(ModelFileError):
            coterie.load(changed(folder, data[:length]))
    with pytest.raises(ModelFileError):
        coterie.load(changed(folder, data + b"\0"))


@HURRIED
@given(start=st.integers(0, 3000), junk=st.binary(max_size=40))
def test_junk_in_the_middle_changes_nothing_or_is_rejected(folder, start, junk):
    model, _ = fitted("GaussianMixture VVI")
    data = written("GaussianMixture VVI", folder).read_bytes()
    found = load_or_refuse(changed(folder, data[:start] + junk + data[start + len(junk) :]))
    assert found is None or same(found, model)


@given(junk=st.binary(max_size=200))
@example(junk=b"\x80")  # a pickle that ends after its first byte
@settings(deadline=None)
def test_junk_is_rejected(tmp_path_factory, junk):
    with pytest.raises(ModelFileError):
        coterie.load(changed(tmp_path_factory.mktemp("junk"), junk))


# harm

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), st.text(),
    st.sampled_from(["nan", "inf", "array", "tuple", "os.system", "bisecting.Tree", "builtins.eval", "KMeans"]),
)  # fmt: skip
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["array", "tuple", "dict", "record", "object", "fields", "model", "options", "state", "float",
                         "number", "dtype", "texts", "shape", "sparse", "generator", "slice", "range", "x"]),
        inner, max_size=3,
    ),
    max_leaves=6,
)  # fmt: skip


def places(node, path=()):
    """All positions in the content at which a value can be replaced."""
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


@pytest.mark.parametrize("name", FORGED)
@HURRIED
@given(data=st.data())
def test_edited_content_is_harmless(name, folder, data):
    """With a valid checksum, the file is rejected, or its model predicts or raises an error of the library."""
    _, rows = fitted(name)
    content, tensors = container.read(written(name, folder))
    everywhere = list(places(content))
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, key = data.draw(st.sampled_from(everywhere))
        what = data.draw(st.sampled_from(["replace", "move", "remove", "add"]))
        try:
            parent = at(content, parents)
            if what == "remove":
                del parent[key]
            elif what == "add" and isinstance(parent, dict):
                parent[data.draw(st.sampled_from(["_model", "predict", "x_", "__class__", "record", "array"]))] = 1
            else:
                other = at(content, data.draw(st.sampled_from(everywhere))) if what == "move" else data.draw(JSON)
                parent[key] = deepcopy(other)
        except (KeyError, IndexError, TypeError):
            continue  # an edit before has taken it away
    answer_or_complain(forged(folder, content, tensors), rows)


@pytest.mark.parametrize("name", FORGED)
@HURRIED
@given(data=st.data())
def test_edited_arrays_are_harmless(name, folder, data):
    _, rows = fitted(name)
    content, tensors = container.read(written(name, folder))
    which = data.draw(st.sampled_from(sorted(tensors)))
    array = tensors[which]
    what = data.draw(st.sampled_from(["value", "shape", "type", "swap", "remove"]))
    if what == "value" and array.size:
        odd = [np.nan, np.inf, -1e300] if array.dtype.kind == "f" else [-1, -2, 99, 2**31 - 1]
        array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.sampled_from(odd))
    elif what == "shape":
        tensors[which] = np.resize(array, data.draw(st.lists(st.integers(0, 5), max_size=4)))
    elif what == "type":
        tensors[which] = array.astype(data.draw(st.sampled_from(["float64", "float32", "int64", "uint8", "bool"])))
    elif what == "swap":
        tensors[which] = tensors[data.draw(st.sampled_from(sorted(tensors)))]
    else:
        del tensors[which]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # distances to a center at -1e300
        answer_or_complain(forged(folder, content, tensors), rows)


ANSWERS = ("predict", "predict_proba", "transform", "score", "score_samples", "bic")


def answer_or_complain(path, rows):
    """A loaded model predicts, or raises an error of the library, or scikit-learn's error about other columns."""
    model = load_or_refuse(path)
    if model is None:
        return
    with np.errstate(all="ignore"):
        for verb in ANSWERS:
            if hasattr(model, verb):
                with errors_of_the_library():
                    getattr(model, verb)(deepcopy(rows))  # a forged StandardScaler(copy=False) changes them
        if hasattr(model, "sample"):
            with errors_of_the_library():
                model.sample(3)


@contextmanager
def errors_of_the_library():
    try:
        yield
    except (InputError, ParameterError, NotFittedError):
        pass
    except ValueError as error:  # names or number of the columns were edited
        if not re.search("feature names|features, but .* is expecting", str(error)):
            raise


ODD_VALUES = (
    None, True, 0, -1, 7, 10**30, 0.5, "", "x", {"float": "nan"}, {"float": "inf"}, [], {"tuple": []}, {"dict": []},
    {"dict": [["a", 1]]}, {"slice": [0, 1, None]}, {"range": [0, 2, 1]}, {"number": 1, "dtype": "int8"},
    {"numbers": "float32"}, {"texts": ["a", "b"], "shape": [2], "dtype": "object"},
)  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
@HURRIED
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")
def test_a_value_of_another_type_is_rejected_or_harmless(name, folder, data):
    _, rows = fitted(name)
    content, tensors = container.read(written(name, folder))
    *parents, key = data.draw(st.sampled_from(list(places(content))))
    at(content, parents)[key] = deepcopy(data.draw(st.sampled_from(ODD_VALUES)))
    answer_or_complain(forged(folder, content, tensors), rows)


def test_a_count_of_few_bits_does_not_overflow(folder):
    name = "TimeSeriesKMeans lengths"
    content, tensors = container.read(written(name, folder))
    at(content, ["state"])["_channels"] = {"number": 1, "dtype": "int8"}
    answer_or_complain(forged(folder, content, tensors), fitted(name)[1])


EVERY_KIND = (  # their files contain every stored class
    "KMeans", "MiniBatchKMeans", "BalancedKMeans", "SphericalKMeans", "KMedians", "FuzzyCMeans", "RobustScaler",
    "MinMaxScaler", "SimpleImputer", "KernelKMeans", "KernelKMeans sparse", "KernelKMeans polynomial",
    "KernelKMeans linear", "KernelKMeans sigmoid", "KernelKMeans precomputed", "KernelKMeans nystrom",
    "KMedoids euclidean", "KMedoids sqeuclidean", "KMedoids manhattan", "KMedoids chebyshev", "KMedoids cosine",
    "KMedoids correlation", "KMedoids mahalanobis", "KMedoids gower", "KMedoids minkowski", "KMedoids hamming",
    "KMedoids jaccard", "KMedoids precomputed", "TimeSeriesKMeans lengths", "GaussianMixture prior",
    "BayesianGaussianMixture finite", "Mixture poisson prior", "Mixture bernoulli", "Mixture multinomial",
    "Mixture exponential", "Mixture gamma", "Mixture student_t", "Mixture von_mises_fisher", "Mixture frame auto",
    "AgglomerativeClustering", "AgglomerativeClustering average", "AgglomerativeClustering series",
    "DivisiveClustering series", "DivisiveClustering bisecting",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_KIND)
@pytest.mark.filterwarnings("ignore")
def test_every_value_of_another_type_is_rejected_or_harmless(name, folder):
    _, rows = fitted(name)
    content, tensors = container.read(written(name, folder))
    failures = []
    for *parents, key in list(places(content)):
        parent = at(content, parents)
        value = parent[key]
        for odd in ODD_VALUES:
            parent[key] = deepcopy(odd)
            try:
                answer_or_complain(forged(folder, content, tensors), rows)
            except Exception as error:  # all of them are reported together
                failures.append(f"{[*parents, key]} = {odd!r}: {error!r}")
        parent[key] = value
    assert not failures, "\n".join(failures)


def stored_classes(node):
    """The tags of the classes in the content of a file."""
    if isinstance(node, dict):
        yield from (node[key] for key in ("model", "object", "record") if isinstance(node.get(key), str))
    for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from stored_classes(item)


@pytest.mark.slow
def test_values_of_every_stored_class_are_forged(folder):
    classes = {name: set(stored_classes(container.read(written(name, folder))[0])) for name in NAMES}
    assert set().union(*classes.values()) == set().union(*(classes[name] for name in EVERY_KIND))


def test_a_model_whose_parts_do_not_match_is_rejected(folder):
    content, tensors = container.read(written("Mixture student_t", folder))
    name = next(name for name in tensors if name.endswith("_unit"))
    tensors[name] = tensors[name][:2].copy()
    with pytest.raises(ModelFileError, match="parts do not match"):
        coterie.load(forged(folder, content, tensors))


@pytest.mark.parametrize("structure", [None, 7, "x", [], "diag"])
def test_a_structure_that_does_not_match_the_scale_matrices_is_rejected(structure, folder):
    content, tensors = container.read(written("Mixture student_t", folder))
    content["state"]["_fitted_model"]["fields"]["family"]["fields"]["structure"] = structure
    with pytest.raises(ModelFileError, match="do not match each other"):
        coterie.load(forged(folder, content, tensors))


@pytest.mark.parametrize("tag", ["os.system", "builtins.eval", "kmeans.lloyd.Lloyd", "checkpoint.Search", ""])
def test_classes_that_are_not_declared_are_rejected(tag, folder):
    content, tensors = container.read(written("BisectingKMeans", folder))
    content["state"]["tree_"]["record"] = tag
    with pytest.raises(ModelFileError, match="does not know"):
        coterie.load(forged(folder, content, tensors))


@pytest.mark.parametrize("tag", ["KMeans", "family.Poisson"])
def test_classes_that_are_not_records_are_rejected_as_records(tag, folder):
    content, tensors = container.read(written("BisectingKMeans", folder))
    content["state"]["tree_"]["record"] = tag
    with pytest.raises(ModelFileError, match="not a record"):
        coterie.load(forged(folder, content, tensors))


def test_a_model_of_an_unknown_kind_is_rejected(folder):
    content, tensors = container.read(written("KMeans", folder))
    content["model"] = "Popen"
    with pytest.raises(ModelFileError, match="'Popen'"):
        coterie.load(forged(folder, content, tensors))


def test_an_unknown_option_is_rejected(folder):
    content, tensors = container.read(written("KMeans", folder))
    content["options"]["speed"] = 11
    with pytest.raises(ModelFileError, match="no option 'speed'"):
        coterie.load(forged(folder, content, tensors))


@pytest.mark.parametrize("attribute", ["predict", "_model", "__class__", "__dict__", "_params", "x"])
def test_attributes_that_no_fit_leaves_are_rejected(attribute, folder):
    content, tensors = container.read(written("KMeans", folder))
    content["state"][attribute] = 1
    with pytest.raises(ModelFileError, match=f"no attribute '{attribute}'"):
        coterie.load(forged(folder, content, tensors))


def test_what_is_written_in_a_class_is_not_replaced(folder):
    content, tensors = container.read(written("Mixture poisson", folder))
    content["state"]["families_"] = 1
    with pytest.raises(ModelFileError, match="no attribute 'families_'"):
        coterie.load(forged(folder, content, tensors))


def test_a_cache_of_pickles_cannot_be_smuggled_in(folder):
    content, tensors = container.read(written("StandardScaler", folder))
    content["options"]["memory"] = "/tmp/cache"
    with pytest.raises(ModelFileError, match="must have memory=None"):
        coterie.load(forged(folder, content, tensors))


def test_a_pipeline_that_ends_in_something_else_is_rejected(folder):
    content, tensors = container.read(written("StandardScaler", folder))
    content["options"]["steps"].reverse()
    with pytest.raises(ModelFileError, match="must end in an estimator of coterie"):
        coterie.load(forged(folder, content, tensors))


def test_a_tree_with_a_cycle_is_rejected(folder):
    content, tensors = container.read(written("BisectingKMeans", folder))
    tensors["tree_.children"][1] = 0, 1
    with pytest.raises(ModelFileError, match="do not match each other"):
        coterie.load(forged(folder, content, tensors))


@pytest.mark.parametrize("name", ["cluster_centers_", "labels_"])
def test_values_out_of_range_are_rejected(name, folder):
    content, tensors = container.read(written("KMeans", folder))
    tensors[name].flat[0] = np.inf if name == "cluster_centers_" else 3
    with pytest.raises(ModelFileError, match=name):
        coterie.load(forged(folder, content, tensors))


def test_centers_of_other_columns_are_rejected(folder):
    content, tensors = container.read(written("KMeans", folder))
    tensors["cluster_centers_"] = tensors["cluster_centers_"][:, :2].copy()
    with pytest.raises(ModelFileError, match=r"KMeans\.cluster_centers_"):
        coterie.load(forged(folder, content, tensors))


def test_deep_nesting_is_rejected(folder):
    content, tensors = container.read(written("KMeans", folder))
    text = json.dumps(content).replace('"inertia_": ', f'"inertia_": {"[" * 50_000}{"]" * 50_000}, "x_": ')
    head = {"format": 1, "sha256": container.digest(text, tensors), "content": text}
    with pytest.raises(ModelFileError, match=r"nested|JSON"):
        coterie.load(changed(folder, to_safetensors(tensors, {"coterie": json.dumps(head)})))


# files of others


def header(entries: dict, data: bytes = b"", length: int | None = None) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


METADATA = {"__metadata__": {"coterie": json.dumps({"format": 1, "sha256": "", "content": "{}"})}}
ODD = {
    "empty": b"",
    "pickle": pickle.dumps({"a": 1}),
    "header longer than the file": header({}, length=2**40),
    "header of all memory": header({}, length=2**63),
    "not JSON": header({})[:8] + b"x" * 2,
    "no metadata": to_safetensors({"a": np.zeros(3)}),
    "metadata of others": to_safetensors({"a": np.zeros(3)}, {"format": "pt"}),
    "shape beyond the data": header({**METADATA, "a": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}),
    "shape that overflows": header({**METADATA, "a": {"dtype": "F64", "shape": [2**62, 8], "data_offsets": [0, 0]}}),
    "nothing, very wide": header({**METADATA, "a": {"dtype": "F64", "shape": [0, 2**50], "data_offsets": [0, 0]}}),
    "type of others": header({**METADATA, "a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}, b"ab"),
    "half floats": to_safetensors({"a": np.zeros(3, np.float16)}, METADATA["__metadata__"]),
    "overlapping": header(
        {**METADATA, **{name: {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]} for name in "ab"}}, b"ab"
    ),
    "a hole": header({**METADATA, "a": {"dtype": "U8", "shape": [1], "data_offsets": [3, 4]}}, b"abcd"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_rejected_without_taking_memory(name, folder):
    path = changed(folder, ODD[name])
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r'cannot load ".*changed.safetensors"'):
            coterie.load(path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_table_is_not_a_model_file(folder):
    with pytest.raises(ModelFileError, match=r"it is not a model file written by coterie\.save$"):
        coterie.load(changed(folder, b"sepal,petal\n1,2\n"))


def test_a_pickle_is_never_opened(folder):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    with pytest.raises(ModelFileError, match="pickles are never opened"):
        coterie.load(changed(folder, pickle.dumps(Trap(), protocol=4)))


@pytest.mark.parametrize(
    "version, words",
    [(2, "it has format 2, but .* reads format 1: use the version"), (0, "format"), ("1", "format"), (None, "format")],
)
def test_files_of_other_formats_are_rejected(version, words, folder):
    data = to_safetensors({}, {"coterie": json.dumps({"format": version, "new": True})})
    with pytest.raises(ModelFileError, match=words):
        coterie.load(changed(folder, data))


def test_names_that_appear_twice_are_rejected():
    with pytest.raises(ModelFileError, match="twice"):
        container.parse('{"a": 1, "a": 2}')


def test_numbers_that_json_does_not_have_are_rejected():
    with pytest.raises(ModelFileError, match="NaN"):
        container.parse('{"a": NaN}')


@pytest.mark.parametrize("code", [np.nan, np.inf, -1.0, 7.0])
def test_codes_that_are_no_category_are_rejected(code, folder):
    content, tensors = container.read(written("Mixture frame", folder))
    names = [name for name in tensors if "_levels" in name]
    assert names
    for name in names:
        with pytest.raises(ModelFileError, match="do not match each other"):
            coterie.load(forged(folder, content, tensors | {name: np.append(tensors[name][:-1], code)}))
