"""Actors of Ray give what threads give, also if an actor is killed."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

ray = pytest.importorskip("ray", reason='ray is not installed: pip install "coterie[ray]"')

from coterie import KMeans  # noqa: E402
from coterie.data import as_source, scan_files  # noqa: E402
from coterie.engines.ray import Ray, RayPlacement, connected  # noqa: E402
from coterie.errors import ParameterError  # noqa: E402

# A cluster of Ray takes many seconds to start, and warns about its own future defaults.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

X = np.random.default_rng(0).normal(size=(60_000, 8))


@pytest.fixture(scope="module")
def cluster():
    assert len(as_source(X).parts()) >= 3
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def expected():
    return model("threads").fit(X)


def model(engine):
    return KMeans(4, init="k-means||", random_state=0, tol=1e-3, engine=engine)


def assert_same(there, here):
    np.testing.assert_array_equal(there.cluster_centers_, here.cluster_centers_)
    np.testing.assert_array_equal(there.history_, here.history_)
    np.testing.assert_array_equal(there.labels_, here.labels_)


@pytest.fixture
def kill_before(monkeypatch):
    """Kill the process of an actor before the passes with these numbers."""
    numbers, count, ask = set(), iter(range(10**6)), RayPlacement.ask

    def watched(self, order, parts):
        if next(count) in numbers:
            actor = self.actors[next(iter(parts))]
            os.kill(ray.get(actor.process.remote()), signal.SIGKILL)
        return ask(self, order, parts)

    monkeypatch.setattr(RayPlacement, "ask", watched)
    return numbers


def test_actors_have_the_bits_of_threads(cluster, expected):
    assert_same(model(Ray(n_actors=2, n_threads=1)).fit(X), expected)


def test_actors_that_read_files_have_the_bits_of_threads(cluster, expected, tmp_path):
    for i in range(3):
        pl.DataFrame(X[i * 20_000 : (i + 1) * 20_000], schema=list("abcdefgh")).write_parquet(tmp_path / f"{i}.parquet")
    assert_same(model(Ray(n_actors=2, n_threads=1)).fit(scan_files(tmp_path, cache="none")), expected)


@pytest.mark.parametrize("numbers", [{0}, {3}, {9}, {2, 8, 11}], ids=str)
def test_an_actor_that_is_killed_changes_no_bit(cluster, expected, kill_before, numbers):
    kill_before.update(numbers)
    assert_same(model(Ray(n_actors=2, n_threads=1)).fit(X), expected)


def test_the_only_actor_is_replaced(cluster, expected, kill_before):
    kill_before.add(4)
    assert_same(model(Ray(n_actors=1, n_threads=1)).fit(X), expected)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def remote_cluster(tmp_path, monkeypatch):
    """The address of a cluster of processes that this one is not connected to, with a token of its own."""
    pytest.importorskip("grpc", reason='addresses of Ray need its client: pip install "coterie[ray]"')
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    port, client_port = free_port(), free_port()
    options = ["--head", "--block", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options]
    with (tmp_path / "ray.log").open("w") as log:
        head = subprocess.Popen(
            [*command, f"--port={port}", f"--ray-client-server-port={client_port}"],
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while "--block" not in (tmp_path / "ray.log").read_text():  # its last lines
            assert head.poll() is None, (tmp_path / "ray.log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "ray.log").read_text()
            time.sleep(0.2)
        yield f"ray://127.0.0.1:{client_port}"
    finally:
        head.terminate()  # it ends its processes
        head.wait(60)


def test_the_command_line_lets_actors_read_files_and_write_the_clusters(remote_cluster, tmp_path):
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=60_000)
    rows = pl.DataFrame(rng.normal(size=(60_000, 4)) + 20.0 * truth[:, None], schema=list("abcd"))
    (tmp_path / "rows").mkdir()
    for i, part in enumerate(rows.iter_slices(20_000)):
        part.write_parquet(tmp_path / "rows" / f"{i}.parquet")
    options = ["-k", "3", "--engine", remote_cluster, "--output", tmp_path / "labels" / "*.parquet"]
    command = [sys.executable, "-m", "coterie", "fit", tmp_path / "rows" / "*.parquet", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "60,000 rows" in run.stdout
    labels = pl.read_parquet(tmp_path / "labels" / "*.parquet")["cluster"].to_numpy()
    first = [labels[truth == k][0] for k in range(3)]
    np.testing.assert_array_equal(labels, np.array(first)[truth])
    assert sorted(first) == [0, 1, 2]


def test_an_address_without_a_cluster_is_an_error_that_says_what_to_check(monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)

    def fail(**_):
        raise ConnectionError("timeout")

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(ParameterError, match=r"ray://host:1.*timeout.*RAY_AUTH_TOKEN"):
        connected("ray://host:1")
