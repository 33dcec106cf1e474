"""`coterie choose-k`."""

import json

import numpy as np
import pytest

from coterie import choose_k
from coterie.cli import main
from coterie.datasets import make_blobs


@pytest.fixture
def blobs(folder):
    X, _ = make_blobs(200, 2, centers=4, cluster_std=0.3, random_state=0)
    np.save(folder / "x.npy", X)
    return X


def test_it_says_what_the_library_says(blobs, capsys):
    assert main(["choose-k", "x.npy", "-k", "2:6", "--budget", "quick", "--json", "--seed", "3"]) == 0
    plain = json.loads(capsys.readouterr().out)
    expected = choose_k(blobs, range(2, 7), budget="quick", random_state=3)
    assert plain["recommended"] == expected.recommended == 4
    assert plain["choice"]["table"] == expected.table()
    assert plain["choice"]["reason"] == expected.reason
    assert plain["choice"]["strength"] == expected.strength == "clear"
    assert plain["choice"]["runner_up"] == expected.runner_up
    assert plain["seed"] == 3


def test_the_text_has_a_line_for_every_number_and_every_vote(blobs, capsys):
    assert main(["choose-k", "x.npy", "-k", "2:6", "--criteria", "silhouette,gap", "--criteria", "bic"]) == 0
    out = capsys.readouterr().out
    assert "K inertia silhouette gap ± se BIC ICL support" in " ".join(out.split())
    assert "\n4 ◀" in out
    assert "? K = 4 (weak; runner-up " in out  # without the test for clusters
    assert [line.split()[0] for line in out.splitlines() if line.endswith((" 1", " 0.5", " 0.1"))] == [
        "silhouette",
        "gap",
        "BIC",
    ]


def test_a_number_that_is_not_clear_has_no_tick(folder, capsys):
    np.save(folder / "x.npy", np.random.default_rng(0).uniform(size=(200, 3)))
    criteria = ["--criteria", "tendency,silhouette,valleys"]
    assert main(["choose-k", "x.npy", "-k", "1:5", *criteria]) == 0  # one cluster is an answer
    assert main(["fit", "x.npy", "-k", "2:5", "--budget", "quick"]) == 5
    capsys.readouterr()
    assert main(["choose-k", "x.npy", "-k", "2:5", *criteria]) == 5
    captured = capsys.readouterr()
    assert "✓" not in captured.out
    assert "\n? K = " in captured.out
    assert "(no clear number; runner-up " in captured.out
    assert "warning: no clear number of clusters between 2 and 5: " in captured.err


def test_clusters_of_another_algorithm_can_be_judged(blobs, capsys):
    assert main(["choose-k", "x.npy", "-a", "ward", "-k", "2:5", "--criteria", "silhouette", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["choice"]["clusters_by"] == "Ward's linkage"


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["-k", "4"], 2, "-k takes a range (2:12) or auto here, not 4."),
        (["-k", "five"], 2, 'not "five"'),
        (["--criteria", "silhuette"], 2, "silhouette"),
        (["--budget", "huge"], 2, "quick"),
        (["-k", "2:900"], 3, "use ks <= 200"),
        (["-k", "2:100000000000"], 2, "use a smaller range"),
        (["-a", "mixture"], 2, "for example -k 3"),
    ],
)
def test_invalid_arguments_are_rejected(blobs, capsys, arguments, code, message):
    assert main(["choose-k", "x.npy", *arguments]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
