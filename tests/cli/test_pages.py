"""`--report`, `--animate` and `coterie report`: pages beside the other files of a command, all of them or none."""

import json
import os
import signal
import sys
from io import BytesIO
from pathlib import Path

import polars as pl
import pytest

from coterie.cli import main

FIT = ["fit", "penguins.csv", "-k", "3", "--missing", "drop", "--exclude", "year"]
FILES = ["-o", "out.csv", "--model", "m.safetensors", "--report", "r.html", "--animate", "p.html"]
WRITTEN = ["m.safetensors", "out.csv", "p.html", "penguins.csv", "r.html"]


def names(folder, *, hidden: bool = True) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if hidden or not path.name.startswith("."))


def test_all_files_of_a_fit_appear_and_are_named(penguins, folder, capsys):
    assert main([*FIT, *FILES]) == 0
    out = capsys.readouterr().out
    assert names(folder) == WRITTEN
    assert all(f"wrote {name} (" in out for name in WRITTEN if name != "penguins.csv")
    assert main([*FIT, *FILES, "--force", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["report"], plain["animation"]) == ("r.html", "p.html")
    assert plain["report_size"] == (folder / "r.html").stat().st_size
    assert names(folder) == WRITTEN


def test_a_fit_that_is_played_is_the_fit_that_is_not(penguins, folder):
    two = [*FIT, "-c", "bill_length_mm,body_mass_g"]
    assert main([*two, "-o", "plain.csv"]) == 0
    assert main([*two, "-o", "played.csv", "--animate", "p.html"]) == 0
    assert (folder / "plain.csv").read_bytes() == (folder / "played.csv").read_bytes()
    assert "bill_length_mm (scaled)" in (folder / "p.html").read_text(encoding="utf-8")


def test_a_static_page_has_no_script(penguins, folder):
    for name, more in (("live.html", []), ("static.html", ["--static"])):
        assert main([*FIT, "--report", name, *more]) == 0
    live, static = ((folder / name).read_text(encoding="utf-8") for name in ("live.html", "static.html"))
    assert "<script" in live
    assert "<script" not in static


@pytest.mark.parametrize(
    "command",
    [
        ["choose-k", "penguins.csv", "-k", "2:4", "--missing", "drop", "--budget", "quick", "--report", "r.html"],
        ["compare", "penguins.csv", "-a", "kmeans", "-a", "ward", "-k", "3", "--missing", "drop", "--report", "r.html"],
        ["report", "penguins.csv", "--labels", "species", "--missing", "drop", "-o", "r.html"],
    ],
)
def test_other_commands_write_pages_and_replace_them_when_forced_only(penguins, folder, capsys, command):
    assert main(command) == 0
    assert "wrote r.html (" in capsys.readouterr().out
    page = (folder / "r.html").read_bytes()
    assert page.startswith(b"<!")
    (folder / "r.html").write_text("mine")
    assert main(command) == 2
    assert "r.html already exists. Use --force" in capsys.readouterr().err
    assert (folder / "r.html").read_text() == "mine"
    assert main([*command, "--force"]) == 0
    assert (folder / "r.html").read_bytes().startswith(b"<!")
    assert names(folder) == ["penguins.csv", "r.html"]


def test_a_page_of_a_model_has_the_clusters_that_predict_gives(penguins, folder, capsys):
    assert (
        main([*FIT[:4], "--missing", "median", "--exclude", "year", "--model", "m.safetensors", "-o", "out.csv"]) == 0
    )
    capsys.readouterr()
    assert main(["report", "penguins.csv", "--model", "m.safetensors", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    sizes = pl.read_csv(folder / "out.csv")["cluster"].value_counts().sort("cluster")["count"].to_list()
    assert [cluster["rows"] for cluster in plain["clusters"]] == sizes
    assert plain["report"] == "report.html"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([*FIT, "--static"], "--static needs a report: add --report FILE.html, or leave it out."),
        ([*FIT, "--report", "r.pdf"], "a report ends in .html"),
        ([*FIT, "--report", "no/r.html"], 'there is no folder "no"'),
        ([*FIT, "--report", "r.html", "--animate", "r.html"], "--report and --animate both name"),
        ([*FIT, "--animate", "p.html", "--checkpoint", "c"], "leave out --checkpoint"),
        ([*FIT[:4], "-a", "mixture", "--missing", "drop", "--animate", "p.html"], "; not to mixture."),
        (["report", "penguins.csv"], "either --labels COLUMN or --model FILE"),
        (["report", "penguins.csv", "--labels", "species", "--model", "m.safetensors"], "leave out one of them"),
        (["report", "penguins.csv", "--labels", "species", "-o", "r.txt"], "a report ends in .html"),
    ],
)
def test_a_report_that_cannot_be_written_is_rejected_before_the_work(penguins, folder, capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert names(folder) == ["penguins.csv"]


@pytest.mark.parametrize(
    "name, absent, message",
    [
        ("p.gif", "find_spec", 'Run: pip install "coterie[plot]", or write an .html.'),
        ("p.mp4", "which", "an .mp4 needs the program ffmpeg, which is not installed: write a .gif or an .html."),
    ],
)
def test_an_animation_that_cannot_be_made_is_rejected_before_the_work(
    penguins, folder, capsys, monkeypatch, name, absent, message
):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(f"coterie.jobs.option_checks.{absent}", lambda _: None)
    assert main([*FIT, "--animate", name]) == 2
    assert message in capsys.readouterr().err
    assert names(folder) == ["penguins.csv"]


def test_a_fit_can_be_a_film(penguins, folder):
    pytest.importorskip("matplotlib")
    assert main([*FIT, "--animate", "p.gif"]) == 0
    assert (folder / "p.gif").read_bytes().startswith(b"GIF")


def test_names_may_end_in_capitals(penguins, folder):
    capitals = ["-o", "OUT.CSV", "--model", "M.SAFETENSORS", "--report", "R.HTML", "--animate", "P.HTML"]
    assert main([*FIT, *capitals]) == 0
    assert names(folder) == ["M.SAFETENSORS", "OUT.CSV", "P.HTML", "R.HTML", "penguins.csv"]


def test_a_failure_of_the_last_file_leaves_none(penguins, folder, capsys, monkeypatch):
    (folder / "out.csv").write_text("mine")

    def broken(*_, **__):
        assert len([name for name in names(folder) if ".part." in name]) == 3, "the others should be written by now"
        raise RuntimeError("out of luck")

    monkeypatch.setattr("coterie.report.html.as_html", broken)
    assert main([*FIT, *FILES, "--force"]) == 1
    assert names(folder) == ["out.csv", "penguins.csv"]
    assert (folder / "out.csv").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself signals there")
@pytest.mark.parametrize("sent", ["SIGINT", "SIGKILL"])
def test_a_signal_while_the_last_file_is_written_leaves_none(penguins, folder, python, sent):
    done = python(
        "import os, signal, sys, time\n"
        "import coterie.report.html as html\n"
        "def stopped(*_, **__):\n"
        f"    os.kill(os.getpid(), signal.{sent})\n"
        "    time.sleep(10)\n"
        "html.as_html = stopped\n"
        "from coterie.cli import main\n"
        f"sys.exit(main({[*FIT, *FILES]}))"
    )
    assert done.returncode == (130 if sent == "SIGINT" else -signal.SIGKILL)
    assert names(folder, hidden=sent == "SIGINT") == ["penguins.csv"]


def test_a_column_of_very_many_labels_is_doubted(penguins, capsys):
    assert main(["report", "penguins.csv", "--labels", "body_mass_g", "--missing", "drop"]) == 0
    assert 'column "body_mass_g" has 94 different values: is it the column of the clusters?' in capsys.readouterr().err


def test_a_file_name_that_is_not_utf8_has_a_report_with_a_command_and_a_reason_for_no_script(folder, capsys):
    name = os.fsdecode(b"caf\xe9.csv")
    try:
        Path(name).write_text("a,b\n" + "".join(f"{i % 7},{i * i % 11}\n" for i in range(40)))
    except OSError:
        pytest.skip("file names must be UTF-8 here")
    for command in (["fit", name, "-k", "2"], ["choose-k", name, "--budget", "quick"], ["compare", name, "-k", "2"]):
        assert main([*command, "--report", "r.html", "--force", "-q"]) == 0
    text = Path("r.html").read_text(encoding="utf-8")
    assert "caf\\xe9.csv" in text
    assert "rename it to have code that reads it" in text
    pl.DataFrame({"a": [1.0, 2.0]}).write_parquet(parquet := BytesIO())
    Path(name).with_suffix(".parquet").write_bytes(parquet.getvalue())
    assert main(["info", str(Path(name).with_suffix(".parquet"))]) == 3
    assert 'cannot read "caf\\xe9.parquet"' in capsys.readouterr().err
