"""What a command imports: the libraries that it uses."""

import json

import pytest

COMMAND = "from coterie.cli import main; main(['fit', 'penguins.csv', '-k', '3', '--missing', 'drop', '--quiet'])"
REST = "; import json, sys; print(json.dumps(sorted(sys.modules)))"


def test_a_fit_of_a_small_table_does_not_import_compiled_kernels_and_criteria_of_k(penguins, python):
    done = python(COMMAND + REST)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded >= {"sklearn.base", "polars", "coterie.kmeans.kmeans"}
    unused = {"pandas", "numba", "matplotlib", "sklearn.preprocessing", "scipy.stats._stats_py", "coterie.selection"}
    assert loaded & unused == set()


@pytest.mark.parametrize("library", ["pandas", "scipy.stats"])
def test_a_library_that_scikit_learn_was_imported_without_can_be_used_afterwards(penguins, python, library):
    pytest.importorskip("pandas")
    uses = {
        "pandas": "import pandas; from coterie import KMeans; X = pandas.DataFrame({'a': [0.0, 1, 9]})"
        "; model = KMeans(2).set_output(transform='pandas'); print(type(model.fit_transform(X)).__name__)",
        "scipy.stats": "import scipy.stats; from scipy.stats import norm; print(scipy.stats.norm.cdf(0) + norm.cdf(0))",
    }
    done = python(f"{COMMAND}; {uses[library]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == {"pandas": "DataFrame", "scipy.stats": "1.0"}[library]


def test_libraries_that_were_imported_before_a_command_stay(penguins, python):
    pytest.importorskip("pandas")
    check = "assert sys.modules['pandas'] is pandas and sys.modules['scipy.stats'] is stats and len(sys.meta_path) == n"
    done = python(f"import sys, pandas, scipy.stats as stats; n = len(sys.meta_path); {COMMAND}; {check}")
    assert done.returncode == 0, done.stderr


def test_an_interrupted_import_hides_nothing_afterwards(python):
    code = """
import sys
from coterie.cli import sklearn_import

def interrupted(name):
    raise KeyboardInterrupt

sklearn_import.import_module, n = interrupted, len(sys.meta_path)
try:
    sklearn_import.import_sklearn()
except KeyboardInterrupt:
    assert "pandas" not in sys.modules and len(sys.meta_path) == n
    print("interrupted")
"""
    assert python(code).stdout.split() == ["interrupted"]
