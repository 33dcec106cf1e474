"""The statement for PostgreSQL gives the labels of `predict` on a server, which runs for these tests only."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import coterie
from coterie import jobs
from exports.test_tables import NUMBERS, shop, tables  # noqa: F401  (fixtures)
from fuzz.draw import RandomDraw
from fuzz.exported import NAMES, PREPARATIONS, ROW, exported, fitted, new_rows, predicted, quoted, training_table

pytestmark = pytest.mark.slow
TYPES = {pl.Float64: "DOUBLE PRECISION", pl.Float32: "REAL", pl.Int64: "BIGINT", pl.Boolean: "BOOLEAN"}


def binaries():
    """The folder of the programs of a server, or None."""
    path = shutil.which("initdb")
    folders = [Path(path).parent] if path else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return next((each for each in reversed(folders) if (each / "initdb").exists() and shutil.which("psql")), None)


def copied(value):
    """A value in the text format of COPY."""
    if value is None:
        return "\\N"
    for letter, escape in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        value = str(value).replace(letter, escape)
    return value


class Server:
    """A PostgreSQL server with a socket in its own folder, and no network."""

    def __init__(self, folder, bin_folder):
        self.folder, self.bin = folder, bin_folder
        self.user = {"user": "postgres"} if os.geteuid() == 0 else {}  # the server does not run as root
        if self.user:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-D", folder / "data", "-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C", "-N")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        self._run("pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", options, "start")

    def _run(self, program, *arguments):
        subprocess.run(
            [self.bin / program, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=60,
            cwd=self.folder,
            **self.user,
        )

    def stop(self):
        self._run("pg_ctl", "-D", self.folder / "data", "-w", "-m", "immediate", "stop")

    def query(self, script):
        command = ["psql", "-h", self.folder, "-U", "tester", "-d", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def labels(self, model, frame):
        """The clusters of the rows of a frame, by the exported statement."""
        statement = exported(model, "sql", dialect="postgresql", table="public.the table")
        frame = frame.with_row_index(ROW).cast({ROW: pl.Int64})
        columns = ", ".join(f"{quoted(name)} {TYPES.get(dtype, 'TEXT')}" for name, dtype in frame.schema.items())
        lines = "".join("\t".join(map(copied, row)) + "\n" for row in frame.iter_rows())
        self.query(f'DROP TABLE IF EXISTS "the table"; CREATE TABLE "the table" ({columns})')
        self.query(f'COPY "the table" FROM STDIN;\n{lines}\\.\n')
        result = self.query(
            f"CREATE TEMP TABLE labelled AS {statement};\n"
            f"COPY (SELECT {quoted(ROW)}, cluster FROM labelled ORDER BY 1) TO STDOUT"
        )
        values = [line.split("\t")[1] for line in result.splitlines()]
        return [None if value == "\\N" else int(value) for value in values]


@pytest.fixture(scope="module")
def server():
    folder = binaries()
    if folder is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="pg") as temporary:  # short: the path of a socket has at most 107 bytes
        running = Server(Path(temporary), folder)
        yield running
        running.stop()


def same_labels(server, model_path, table_path, frame, missing):
    labels = jobs.predict(jobs.PredictJob(model_path, table_path, missing=missing)).labels.tolist()
    assert server.labels(model_path, frame) == [None if label < 0 else label for label in labels]


FITS = {
    "categories": ("drop", {"k": 4, "missing": "drop", "one_hot": ("sex", "island")}),
    "median": ("auto", {"k": 4, "missing": "median", "one_hot": ("sex", "island"), "scale": "robust"}),
    "ignored": ("auto", {"k": 4, "missing": "ignore", "one_hot": ("sex",)}),
    "spherical": ("drop", {"k": 3, "algorithm": "spherical", "missing": "drop"}),
    "mixture": ("auto", {"k": 3, "algorithm": "gmm", "missing": "median", "options": {"covariance": "VVV"}}),
}


@pytest.mark.parametrize("name", FITS)
def test_missing_values_and_categories(server, tables, name):  # noqa: F811
    folder, *frames = tables
    missing, options = FITS[name]
    path = folder / "postgresql.safetensors"
    jobs.run(jobs.Job(folder / "penguins.parquet", columns=NUMBERS, model=path, force=True, **options))
    for table, frame in zip(("penguins.parquet", "new.parquet"), frames, strict=True):
        same_labels(server, path, folder / table, frame, missing)


def test_transforms_and_truth_values(server, shop):  # noqa: F811
    folder, frame = shop
    path = folder / "postgresql.safetensors"
    options = {"missing": "median", "exclude": ("day",), "transform": ("log:amount", "sqrt:visits", "log1p:price")}
    result = jobs.run(jobs.Job(folder / "shop.parquet", k=3, model=path, **options))
    assert server.labels(path, frame) == result.labels.tolist()


def test_nan_and_infinity_have_no_cluster_and_extreme_numbers_have_one(server):
    model = coterie.KMeans(2, random_state=0).fit(pl.DataFrame({"x": [0.0, 1.0, 1e150, 1.1e150]}))
    new = pl.DataFrame({"x": [np.nan, np.inf, -np.inf, 1e150, 1e-150, None, -0.0]})
    first, second = model.predict(pl.DataFrame({"x": [0.0, 1e150]})).tolist()
    assert server.labels(model, new) == [None, None, None, second, first, None, first]


def test_hostile_names_and_categories(server, tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({name: rng.normal(size=80) for name in NAMES})
    model = coterie.KMeans(3, random_state=0).fit(frame)
    assert server.labels(model, frame) == model.labels_.tolist()
    frame = pl.DataFrame({"x": rng.normal(size=180), "kind": [NAMES[i % len(NAMES)] for i in range(180)]})
    frame.write_parquet(tmp_path / "table.parquet")
    path = tmp_path / "model.safetensors"
    job = jobs.Job(tmp_path / "table.parquet", k=5, one_hot=("kind",), missing="median", model=path)
    result = jobs.run(job)  # a cell of blanks is a missing value
    assert server.labels(path, frame) == result.labels.tolist()


def test_many_columns_and_clusters(server):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({f"x{j}": rng.normal(size=200) for j in range(120)})
    model = coterie.KMeans(12, random_state=0).fit(frame)
    assert server.labels(model, frame) == model.labels_.tolist()


@pytest.mark.parametrize("preparation", PREPARATIONS)
def test_exports_have_the_labels_of_predict(server, tmp_path, preparation):
    draw, model = RandomDraw(*map(ord, preparation)), tmp_path / "model.safetensors"
    table, categories = training_table(draw, 60)
    fitted(model, table, "kmeans", preparation, categories)
    new = new_rows(draw, table, categories, 300)
    assert server.labels(model, new) == predicted(model, new, preparation)
