"""Where and how a command runs: devices, engines, checkpoints; and what it warns of."""

import json
import sys

import numpy as np
import polars as pl
import pytest

from coterie import KMeans
from coterie.algorithms import ALGORITHMS
from coterie.cli import main
from coterie.datasets import make_blobs
from coterie.metrics import adjusted_rand_score

CLOUD = ["fit", "x.npy", "-k", "6", "--n-init", "2"]


@pytest.fixture
def cloud(folder):
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(3000, 4)))
    return folder


@pytest.fixture
def apart(folder):
    """Rows whose clusters are found in a few steps, each of which costs Dask a round."""
    X, _ = make_blobs(300, 3, centers=3, cluster_std=0.1, random_state=0)
    np.save(folder / "x.npy", X)
    return folder


def labels(folder, name: str) -> list[int]:
    return np.load(folder / name).tolist()


# Devices


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_processor_is_what_computes(cloud, device):
    assert main([*CLOUD, "--device", device]) == 0


@pytest.mark.parametrize(
    "command", [[*CLOUD[:2], "-a", "ward", "-k", "3"], ["choose-k", "x.npy"], ["compare", "x.npy", "-a", "kmeans"]]
)
def test_a_gpu_is_rejected_in_a_line_before_the_work_begins(cloud, capsys, command):
    assert main([*command, "--device", "cuda"]) == 2
    captured = capsys.readouterr()
    message = (
        "Error: --device cuda is for coterie fit -k with a number, such as 8, and -a kmeans, minibatch, spherical, "
        "fuzzy, gmm or bayes-gmm.\n"
    )
    assert (captured.out, captured.err) == ("", message)


def test_a_machine_without_a_gpu_is_a_line(cloud, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it fails
    assert main([*CLOUD[:2], "-a", "kmeans", "-k", "3", "--device", "cuda"]) == 2
    message = (
        'Error: --device cuda requires PyTorch, which is not installed: run pip install "coterie[gpu]", '
        "or leave the option out.\n"
    )
    assert capsys.readouterr() == ("", message)


# Engines


@pytest.mark.parametrize("name", [name for name, method in ALGORITHMS.items() if method.distributed])
def test_dask_gives_the_same_clusters(apart, name):
    pytest.importorskip("dask")
    how = ["fit", "x.npy", "-a", name, "-k", "3", "--n-init", "1"]
    assert main([*how, "-o", "here.npy", "--model", "here.safetensors"]) == 0
    assert main([*how, "-o", "dask.npy", "--model", "dask.safetensors", "--engine", "dask"]) == 0
    assert labels(apart, "here.npy") == labels(apart, "dask.npy")
    assert (apart / "here.safetensors").read_bytes() == (apart / "dask.safetensors").read_bytes()


def test_rows_are_sent_to_a_cluster(apart):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        host="127.0.0.1",
        protocol="tcp",
    ) as cluster:
        how = ["fit", "x.npy", "-k", "3", "--n-init", "1"]
        assert main([*how, "-o", "there.npy", "--engine", f"dask:{cluster.scheduler_address}"]) == 0
    assert main([*how, "-o", "here.npy"]) == 0
    assert adjusted_rand_score(labels(apart, "here.npy"), labels(apart, "there.npy")) == 1.0  # other initial centers


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--engine", "spark"], 'takes local, dask, dask:tcp://host:8786, ray or ray://host:10001, not "spark"'),
        (["--engine", "dask:"], 'not "dask:"'),
        (["--engine", "ray:"], 'not "ray:"'),
        (["--engine", "local:8786"], 'not "local:8786"'),
        (["--engine", "dask", "-a", "ward", "-k", "3"], "ward needs all rows in one memory"),
    ],
)
def test_an_unknown_engine_is_rejected(cloud, capsys, arguments, message):
    assert main(["fit", "x.npy", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_named(cloud, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("coterie.engines.dask.TIMEOUT", "200ms")
    assert main([*CLOUD, "--engine", "dask:tcp://127.0.0.1:9"]) == 2
    assert "could not connect to a Dask scheduler at tcp://127.0.0.1:9" in capsys.readouterr().err


def test_dask_that_is_not_installed_says_what_to_run(cloud, capsys, monkeypatch):
    for module in ("dask", "coterie.data.dask", "coterie.engines.dask"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main([*CLOUD, "--engine", "dask"]) == 2
    assert 'Run: pip install "coterie[dask]"' in capsys.readouterr().err


# Checkpoints


def test_an_interrupted_fit_goes_on_from_its_checkpoint_with_the_same_result(cloud, capsys, monkeypatch):
    assert main([*CLOUD, "-o", "whole.npy"]) == 0
    capsys.readouterr()
    fit = KMeans.fit

    def stopped(self, *arguments, **named):
        calls = iter(range(100))
        self.set_params(callback=lambda state: next(calls) >= 3 and (_ for _ in ()).throw(KeyboardInterrupt))
        return fit(self, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(KMeans, "fit", stopped)
        assert main([*CLOUD, "-o", "out.npy", "--checkpoint", "c.safetensors"]) == 130
    assert capsys.readouterr().err == 'Interrupted. Run the same command again to resume from "c.safetensors".\n'
    assert (cloud / "c.safetensors").exists()
    assert not (cloud / "out.npy").exists()
    assert main([*CLOUD, "-o", "out.npy", "--checkpoint", "c.safetensors"]) == 0
    assert labels(cloud, "whole.npy") == labels(cloud, "out.npy")
    assert not (cloud / "c.safetensors").exists()


def test_a_file_that_is_not_a_checkpoint_is_rejected_and_kept(cloud, capsys):
    (cloud / "mine.txt").write_text("mine")
    assert main([*CLOUD, "--checkpoint", "mine.txt"]) == 3
    assert "mine.txt" in capsys.readouterr().err
    assert (cloud / "mine.txt").read_text() == "mine"


def test_a_model_is_saved_without_the_checkpoint_it_was_fitted_with(cloud):
    import coterie

    assert main([*CLOUD, "--checkpoint", "c.safetensors", "--model", "m.safetensors"]) == 0
    assert coterie.load(cloud / "m.safetensors")[-1].checkpoint is None


@pytest.mark.parametrize("option, name", [("--checkpoint", "c.safetensors"), ("--animate", "p.html")])
def test_an_algorithm_without_steps_has_nothing_to_go_on_from_or_to_play(cloud, capsys, option, name):
    assert main(["fit", "x.npy", "-k", "3", "-a", "ward", option, name]) == 2
    err = capsys.readouterr().err
    assert f"Error: {option} belongs to kmeans, " in err
    assert "; not to ward." in err


# Warnings


def warned(capsys, *arguments: str) -> list[str]:
    assert main(list(arguments)) == 0
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]


def test_copies_of_rows_are_counted_once_they_are_many(folder, capsys):
    X = np.random.default_rng(0).normal(size=(100, 2))
    pl.DataFrame(np.vstack([X, X[:25]]), schema=["a", "b"]).write_csv(folder / "many.csv")
    pl.DataFrame(np.vstack([X, X[:2]]), schema=["a", "b"]).write_csv(folder / "few.csv")
    (found,) = warned(capsys, "fit", "many.csv", "-k", "2")
    assert "25 of 125 rows (20.0%) are duplicates of an earlier row in the columns used" in found
    assert "pull centers towards them" in found
    assert warned(capsys, "fit", "few.csv", "-k", "2") == []


def test_copies_are_those_of_the_columns_used_and_of_the_rows_kept(folder, capsys):
    rows = [f"{i},{i % 5},{'' if i % 2 else i}" for i in range(40)]
    (folder / "t.csv").write_text("\n".join(["x,y,z", *rows]), encoding="utf-8")
    assert warned(capsys, "fit", "t.csv", "-k", "2", "-c", "x,y") == []
    (found,) = warned(capsys, "fit", "t.csv", "-k", "2", "-c", "y")
    assert "35 of 40 rows" in found
    assert warned(capsys, "fit", "t.csv", "-k", "2", "-c", "x,z", "--missing", "drop") == []


def test_nearly_as_many_clusters_as_rows_are_doubted(folder, capsys):
    (folder / "t.csv").write_text("\n".join(["x", *map(str, range(0, 40, 2))]), encoding="utf-8")
    (found,) = warned(capsys, "fit", "t.csv", "-k", "11")
    assert "11 clusters are more than one for every two rows" in found
    assert warned(capsys, "fit", "t.csv", "-k", "10") == []


def test_a_fit_that_has_not_converged_names_the_options_that_help(cloud, capsys):
    found = warned(capsys, "fit", "x.npy", "-k", "8", "--max-iter", "1", "--n-init", "1")
    assert found == ["warning: not converged after 1 iteration: try a larger --max-iter or --tol."]


@pytest.mark.parametrize("command", [["fit"], ["choose-k"]])
def test_criteria_that_disagree_are_named_with_what_they_say(folder, capsys, command):
    # Two groups of three: the silhouette sees the groups, the likelihood the clusters in them.
    near = np.array([[0.0, 0.0], [4.5, 0.0], [0.0, 4.5]])
    X, _ = make_blobs(300, centers=np.vstack([near, near + 30]), cluster_std=1.0, random_state=0)
    np.save(folder / "x.npy", X)
    found = warned(capsys, *command, "x.npy", "-k", "2:7", "--budget", "quick")
    assert len(found) == 1
    assert found[0].startswith("warning: criteria disagree: silhouette and Davies–Bouldin prefer 2")
    assert "ICL prefer 6. Look at more than one K" in found[0]


def test_criteria_that_agree_are_not_warned_of(folder, capsys):
    X, _ = make_blobs(200, 2, centers=4, cluster_std=0.3, random_state=0)
    np.save(folder / "x.npy", X)
    assert warned(capsys, "choose-k", "x.npy", "-k", "2:6", "--budget", "quick") == []


def test_a_table_without_clusters_is_said_to_have_none(cloud, capsys):
    (found,) = warned(capsys, "choose-k", "x.npy", "-k", "1:4", "--budget", "quick")
    assert "the table seems to have no clusters" in found


# Help


@pytest.mark.parametrize(
    "command, groups",
    [
        ("fit", {"Files": ["--report", "--static", "--animate", "--model", "-o"]}),
        ("fit", {"Running": ["--device", "--engine", "--checkpoint", "--threads", "--seed"]}),
        ("choose-k", {"Files": ["--report", "--static", "--force"], "Running": ["--device", "--threads"]}),
        ("compare", {"Files": ["--report", "--static", "--force"], "Running": ["--device"]}),
        ("report", {"Files": ["--output", "--static", "--force"], "Parameters": ["--labels", "--model"]}),
        ("predict", {"Files": ["--output", "--force"], "Parameters": ["--missing"], "Running": ["--json"]}),
    ],
)  # fmt: skip
def test_help_lists_options_in_their_groups(capsys, command, groups):
    assert main([command, "--help"]) == 0
    boxes = capsys.readouterr().out.split("╭─ ")
    for title, options in groups.items():
        box = next(box for box in boxes if box.startswith(title))
        for option in options:
            assert f" {option} " in box, (title, option)


def test_help_breaks_lines_where_the_terminal_ends(python):
    done = python("from coterie.cli import main; main(['fit', '--help']); main(['choose-k', '--help'])", COLUMNS="400")
    for sentence in (
        "or - for CSV from standard input. [required]",
        "a distance such as manhattan; kmedians: l1 or l2; kmeans-dtw: dtw, softdtw or euclidean.",
        "Default: depends on the budget.",
    ):
        assert sentence in done.stdout


def test_json_has_what_was_warned_of(folder, capsys):
    (folder / "t.csv").write_text("\n".join(["x,y", *["1,2"] * 20, "5,6"]), encoding="utf-8")
    assert main(["fit", "t.csv", "-k", "2", "--json", "-q"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert any("19 of 21 rows" in warning for warning in json.loads(captured.out)["warnings"])


def test_json_has_no_infinity(folder, capsys):
    """Without variance within clusters, the index of Calinski and Harabasz is infinite."""
    (folder / "two.csv").write_text("a,b\n" + "1,1\n2,2\n" * 10, encoding="utf-8")
    assert main(["compare", "two.csv", "-k", "2", "--json", "-q"]) == 0

    def fail(constant):
        raise AssertionError(constant)

    assert json.loads(capsys.readouterr().out, parse_constant=fail)


def test_too_little_memory_is_no_bug(folder, capsys, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    (folder / "t.csv").write_text("a,b\n1,2\n3,4\n5,9\n")
    monkeypatch.setattr("coterie.jobs.fit_job.fit_clusters", full)
    assert main(["fit", "t.csv", "-k", "2"]) == 3
    assert "not enough memory" in capsys.readouterr().err
