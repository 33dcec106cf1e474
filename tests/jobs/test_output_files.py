"""Files of one command: rejected before the work begins, or complete at its end."""

import os
from pathlib import Path

import numpy as np
import pytest

from coterie.core import writing
from coterie.errors import InputError, ParameterError
from coterie.jobs import Job, run
from coterie.jobs.output_files import OutputFiles, check_outputs

NEW = ["a.csv", "b.safetensors", "c.html"]


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def write_all(folder: Path, *, force: bool = False, last=lambda: None) -> None:
    """Write all of `NEW`, and do `last` before they are moved."""
    with OutputFiles(force=force) as files:
        for name in NEW:
            files.write(folder / name, lambda part: part.write_text("new"))
        last()


def failing(monkeypatch, name: str, error: BaseException, *, after: bool) -> None:
    """Have the move to that name fail, before or after it is done."""
    move = writing.move

    def broken(part, path, overwrite):
        if path.name != name:
            return move(part, path, overwrite)
        if after:
            move(part, path, overwrite)
        raise error

    monkeypatch.setattr(writing, "move", broken)


def test_all_appear_together_and_nothing_else(tmp_path):
    with OutputFiles(force=False) as files:
        for name in NEW:
            size = files.write(tmp_path / name, lambda part: part.write_text("four"))
            assert size == 4
            assert not (tmp_path / name).exists()
    assert content(tmp_path) == dict.fromkeys(NEW, "four")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no"), OSError(28, "No space left")])
@pytest.mark.parametrize("force", [False, True])
def test_a_failure_before_the_end_leaves_what_was_there(tmp_path, error, force):
    (tmp_path / "a.csv").write_text("mine")

    def fail(part):
        part.write_text("half")
        raise error

    def write_two():
        with OutputFiles(force=force) as files:
            files.write(tmp_path / "a.csv", lambda part: part.write_text("new"))
            files.write(tmp_path / "b.html", fail)

    with pytest.raises(InputError if isinstance(error, OSError) else type(error)):
        write_two()
    assert content(tmp_path) == {"a.csv": "mine"}


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left")])
def test_a_move_that_fails_takes_back_those_before_it(tmp_path, monkeypatch, name, after, error):
    failing(monkeypatch, name, error, after=after)
    with pytest.raises((KeyboardInterrupt, InputError)):
        write_all(tmp_path)
    assert content(tmp_path) == {}


@pytest.mark.parametrize("name", NEW)
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("links", [True, False])
def test_what_was_replaced_is_there_again(tmp_path, monkeypatch, name, after, links):
    before = {"a.csv": "mine", "c.html": "mine too"}
    for old, text in before.items():
        (tmp_path / old).write_text(text)
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(95, "not supported")))
    failing(monkeypatch, name, KeyboardInterrupt(), after=after)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path, force=True)
    assert content(tmp_path) == before


def test_a_file_of_another_that_appears_meanwhile_stays_and_the_others_go(tmp_path):
    with pytest.raises(FileExistsError):
        write_all(tmp_path, last=lambda: (tmp_path / "b.safetensors").write_text("theirs"))
    assert content(tmp_path) == {"b.safetensors": "theirs"}


# Before the work begins


@pytest.mark.parametrize(
    "places, message",
    [
        ({"output": "out.pdf"}, "an output ends in .csv"),
        ({"model": "m.pkl"}, "a model ends in .safetensors"),
        ({"report": "r.pdf"}, "a report ends in .html"),
        ({"animate": "p.avi"}, "an animation ends in .html, .gif or .mp4"),
        ({"report": "nowhere/r.html"}, "there is no folder"),
        ({"checkpoint": "nowhere/c"}, "there is no folder"),
        ({"report": "folder.html"}, "it is a folder"),
        ({"report": "r.html", "animate": "sub/../r.html"}, "--report and --animate both name"),
        ({"model": "m.safetensors", "checkpoint": "m.safetensors"}, "--model and --checkpoint both name"),
        ({"model": "table.safetensors"}, "--model names the table itself"),
        ({"checkpoint": "table.safetensors"}, "--checkpoint names the table itself"),
    ],
)
def test_an_invalid_engine_or_checkpoint_is_rejected_by_its_option(tmp_path, monkeypatch, places, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "sub").mkdir()
    Path("table.safetensors").write_text("rows")
    with pytest.raises(ParameterError, match=message):
        check_outputs(Path("table.safetensors"), force=True, **{name: Path(place) for name, place in places.items()})


def test_two_names_of_one_file_are_the_same_file(tmp_path):
    (tmp_path / "a.html").write_text("old")
    os.link(tmp_path / "a.html", tmp_path / "b.html")
    with pytest.raises(ParameterError, match="both name"):
        check_outputs(Path("x.csv"), force=True, report=tmp_path / "a.html", animate=tmp_path / "b.html")


def test_a_checkpoint_that_is_there_is_no_obstacle_and_a_report_is(tmp_path):
    for name in ("c", "r.html"):
        (tmp_path / name).write_text("old")
    check_outputs(Path("x.csv"), force=False, checkpoint=tmp_path / "c")
    with pytest.raises(FileExistsError):
        check_outputs(Path("x.csv"), force=False, report=tmp_path / "r.html")


@pytest.mark.parametrize("name", ["output", "model", "report", "animate", "checkpoint"])
def test_every_file_of_a_job_is_checked_before_the_table_is_read(tmp_path, name):
    with pytest.raises(ParameterError, match="there is no folder"):
        run(Job(tmp_path / "absent.csv", **_suffixed(tmp_path, name)))


def _suffixed(folder: Path, name: str) -> dict[str, Path]:
    suffix = {"output": ".csv", "report": ".html", "animate": ".html"}.get(name, ".safetensors")
    return {name: folder / "nowhere" / f"x{suffix}"}


@pytest.mark.parametrize("stopped", ["writing m.safetensors", "writing out.csv"])
def test_an_interrupt_between_two_files_of_a_job_leaves_neither(tmp_path, stopped):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(40, 2)))

    def interrupt(step):
        if step.step == stopped:
            raise KeyboardInterrupt

    job = Job(tmp_path / "x.npy", k=2, output=tmp_path / "out.csv", model=tmp_path / "m.safetensors")
    with pytest.raises(KeyboardInterrupt):
        run(job, interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]
    run(job)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.safetensors", "out.csv", "x.npy"]


@pytest.mark.parametrize("other", ["x.HTML", "./x.html", "X.html", "sub/../x.Html"])
def test_two_outputs_whose_names_differ_in_case_alone_are_one_file(tmp_path, monkeypatch, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(ParameterError, match="--report and --animate both name"):
        check_outputs(Path("x.csv"), force=False, report=Path("x.html"), animate=Path(other))


@pytest.mark.parametrize("link", [os.link, os.symlink])
@pytest.mark.parametrize("name", ["output", "report"])
def test_an_output_that_is_the_table_is_rejected(tmp_path, name, link):
    table, path = tmp_path / "x.csv", tmp_path / ("y.csv" if name == "output" else "y.html")
    table.write_text("a\n1\n")
    link(table, path)
    with pytest.raises(ParameterError, match="names the table itself"):
        check_outputs(table, force=True, **{name: path})
    assert table.read_text() == "a\n1\n"
