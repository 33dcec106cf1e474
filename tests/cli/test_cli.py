import json
import sys
from pathlib import Path

import pytest

from coterie.cli import main
from coterie.datasets import DEMOS, load_demo

FIT = ["fit", "penguins.csv", "-k", "3", "--missing", "drop"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Results


def test_demo_then_fit_labels_every_complete_penguin(penguins, folder, capsys):
    assert main([*FIT, "-o", "labelled.csv"]) == 0
    out = capsys.readouterr().out
    assert "344 rows · 8 columns → using 5 numeric (skipped: species, island, sex)" in out
    assert "scaling: standard · missing: dropped 2 rows · seed 0" in out
    assert "wrote labelled.csv" in out
    header, *rows = (folder / "labelled.csv").read_text(encoding="utf-8").splitlines()
    assert header.endswith(",year,cluster,cluster_distance")
    assert len(rows) == 344
    assert {row.split(",")[-2] for row in rows} == {"", "0", "1", "2"}
    assert names(folder) == ["labelled.csv", "penguins.csv"]


def test_results_go_to_stdout_and_notes_to_stderr(penguins, capsys):
    main(FIT)
    captured = capsys.readouterr()
    assert "note: skipped as text: species, island, sex (to use one: --one-hot species)." in captured.err
    assert "note" not in captured.out
    assert "stands out by" in captured.out


def test_quiet_leaves_stderr_empty_and_the_result_alone(penguins, capsys):
    main([*FIT, "-q"])
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "stands out by" in captured.out


def test_json_is_one_object_with_the_seed_and_the_clusters(penguins, capsys):
    main([*FIT, "--json", "--seed", "5"])
    plain = json.loads(capsys.readouterr().out)
    assert plain["seed"] == 5
    assert plain["k"] == 3
    assert sum(cluster["rows"] for cluster in plain["clusters"]) == 342


def test_columns_are_separated_by_commas_or_given_twice(penguins, capsys):
    for spelling in (["-c", "body_mass_g,year"], ["-c", "body_mass_g", "--columns", "year"]):
        assert main([*FIT, *spelling, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["columns"] == ["body_mass_g", "year"]


def test_options_reach_the_job(penguins, capsys):
    assert main([*FIT, "--scale", "robust", "--exclude", "year", "--n-init", "2", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["scale"] == "robust"
    assert plain["options"]["n_init"] == 2
    assert plain["skipped"]["year"] == "excluded"


def test_demo_writes_where_it_is_told(folder, capsys):
    assert main(["demo", "penguins", "-o", "birds.csv"]) == 0
    assert names(folder) == ["birds.csv"]
    assert "CC0" in capsys.readouterr().out


def test_demo_without_a_name_lists_what_there_is(folder, capsys):
    assert main(["demo"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(DEMOS)
    assert names(folder) == []


@pytest.mark.parametrize("name", DEMOS)
def test_every_demo_table_can_be_read_as_it_is_written(folder, capsys, name):
    assert main(["demo", name]) == 0
    (file,) = names(folder)
    assert main(["info", file, "--json"]) == 0
    table = load_demo(name)
    plain = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert plain["rows"] == len(table)
    assert [column["name"] for column in plain["columns"]] == list(table.columns)


# Errors


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["fit", "pengins.csv"], 3, 'Error: no file "pengins.csv" here. Did you mean penguins.csv?'),
        (["fit", "penguins.csv", "-c", "bill_lenght_mm"], 3, 'Did you mean "bill_length_mm"?'),
        (["fit", "penguins.csv", "-c", "species"], 3, '"species" holds text'),
        (
            ["fit", "penguins.csv"],
            3,
            "--missing drop (keeps 342 rows), --missing median, --missing ignore, or",
        ),
        ([*FIT, "-k", "343"], 2, "-k"),
        (
            ["fit", "penguins.csv", "-k", "343", "--missing", "drop"],
            3,
            "more clusters than there are rows (342)",
        ),
        (
            ["fit", "penguins.csv", "-k", "2:100000000000", "--missing", "drop"],
            3,
            "-k 100,000,000,000 asks for more clusters than there are rows (342)",
        ),
        (["fit", "penguins.csv", "-k", "six"], 2, 'Error: -k takes a number (8), a range (2:12) or auto, not "six".'),
        (["fit", "penguins.csv", "-k", "12:2"], 2, "Error: -k 12:2 is not a range"),
        (["fit", "penguins.csv", "-k", "0"], 2, "at least 1"),
        (["fit", "penguins.csv", "--seed", "-1"], 2, "seed must be at least 0"),
        (["fit", "penguins.csv", "--scale", "log"], 2, "Choose from"),
        (["fit", "penguins.csv", "--scal", "none"], 2, "Did you mean --scale?"),
        (["fti", "penguins.csv"], 2, 'Did you mean "fit"?'),
        (["fit"], 2, "DATA"),
        ([*FIT, "-o", "penguins.csv"], 2, "penguins.csv already exists. Use --force"),
        ([*FIT, "-o", "out.docx"], 2, ".parquet"),
        (["demo", "penguins"], 2, "penguins.csv already exists. Use --force"),
        (["demo", "iris"], 2, 'no demo table "iris". There are: penguins, customers'),
        (["demo", "pengins"], 2, 'Did you mean "penguins"?'),
        (["demo", "moons", "-o", "moons.xlsx"], 2, "the file name must end in .csv or .parquet"),
        (["demo", "penguins", "-o", "nowhere/p.csv"], 3, "nowhere/p.csv"),
    ],
)
def test_an_error_has_its_code_and_its_remedy_and_leaves_nothing(penguins, folder, capsys, arguments, code, message):
    before = penguins.read_bytes()
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert names(folder) == ["penguins.csv"]
    assert penguins.read_bytes() == before


def test_force_replaces_what_is_there(penguins, folder):
    (folder / "out.csv").write_text("mine")
    assert main([*FIT, "-o", "out.csv", "--force"]) == 0
    assert "cluster" in (folder / "out.csv").read_text(encoding="utf-8")


def test_quiet_does_not_hide_an_error(folder, capsys):
    assert main(["fit", "absent.csv", "-q"]) == 3
    assert "absent.csv" in capsys.readouterr().err


def test_a_bug_asks_for_a_report_and_shows_the_traceback_with_debug_only(penguins, capsys, monkeypatch):
    def broken(*_):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("coterie.jobs.run", broken)
    assert main(FIT) == 1
    plain = capsys.readouterr().err
    assert "RuntimeError: out of luck" in plain
    assert "please report" in plain
    assert "Traceback" not in plain
    assert main([*FIT, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_of_compiled_code_is_an_interrupt(penguins, capsys, monkeypatch):
    def interrupted(*_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as pressed:
            raise SystemError("returned a result with an exception set") from pressed

    monkeypatch.setattr("coterie.jobs.run", interrupted)
    assert main(FIT) == 130
    assert capsys.readouterr().err == "Interrupted.\n"


@pytest.mark.parametrize("package, arguments", [("cyclopts", ["--help"]), ("polars", FIT)])
def test_a_missing_extra_says_what_to_install(penguins, package, arguments, python):
    done = python(
        f"import sys; sys.modules[{package!r}] = None\nfrom coterie.cli import main\nsys.exit(main({arguments}))"
    )
    assert done.returncode == 2
    assert done.stderr == 'The command line needs a few more packages. Run: pip install "coterie[cli]"\n'


# Progress


def make_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("arguments", [FIT, ["choose-k", *FIT[1:2], "-k", "2:4", *FIT[4:], "--budget", "quick"]])
def test_a_terminal_is_shown_how_far_the_work_is(penguins, capsys, monkeypatch, arguments):
    make_terminal(monkeypatch)
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert "penguins.csv" in captured.err
    assert "\x1b" in captured.err
    assert "\x1b" not in captured.out


def test_a_quiet_terminal_stays_quiet(penguins, capsys, monkeypatch):
    make_terminal(monkeypatch)
    assert main([*FIT, "-q"]) == 0
    assert capsys.readouterr().err == ""


# The process


def test_help_imports_nothing_heavy(python):
    done = python(
        "import sys; from coterie.cli import main\n"
        "commands = ['fit', 'predict', 'choose-k', 'compare', 'report', 'export', 'app', 'info', 'doctor', 'warm']\n"
        "codes = {main(['--help']), *(main([command, '--help']) for command in commands)}\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'polars'} & set(sys.modules)\n"
        "print(codes, sorted(heavy), file=sys.stderr)"
    )
    assert done.stderr == "{0} []\n"
    assert "--missing" in done.stdout


def test_the_module_runs_as_a_program_and_hands_on_its_exit_code(python):
    done = python("import runpy; runpy.run_module('coterie', run_name='__main__')\n")
    assert done.returncode == 0
    assert "Usage: coterie" in done.stdout
    done = python(
        "import runpy, sys; sys.argv = ['coterie', 'fit', 'absent.csv']\n"
        "runpy.run_module('coterie', run_name='__main__')\n"
    )
    assert done.returncode == 3


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C there")
def test_an_interrupt_while_writing_leaves_no_file(penguins, folder, python):
    done = python(
        "import os, signal, sys\n"
        "import polars\n"
        "sink_csv = polars.LazyFrame.sink_csv\n"
        "def interrupted(self, path, **options):\n"
        "    sink_csv(self, path, **options)\n"
        "    print(path.exists())\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "polars.LazyFrame.sink_csv = interrupted\n"
        "from coterie.cli import main\n"
        f"sys.exit(main({[*FIT, '-o', 'labelled.csv']}))"
    )
    assert done.returncode == 130
    assert done.stdout == "True\n"
    assert done.stderr == "Interrupted.\n"
    assert names(folder) == ["penguins.csv"]


def test_a_terminal_without_the_characters_still_gets_the_result(penguins, python):
    done = python(f"from coterie.cli import main; raise SystemExit(main({FIT}))", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "344 rows ? 8 columns ? using 5 numeric" in done.stdout
