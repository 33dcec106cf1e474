"""Animations: the same data for pages, GIFs and videos."""

import json
import shutil
from dataclasses import replace
from functools import cache
from io import BytesIO
from itertools import pairwise

import numpy as np
import pytest

from coterie import FuzzyCMeans, GaussianMixture, KMeans, MiniBatchKMeans, Mixture, plots
from coterie.datasets import make_blobs
from coterie.errors import ParameterError
from coterie.palette import NOISE, as_rgb, blends, colours
from coterie.plots.video import Video, render_video
from coterie.web.packing import unpack_labels, unpack_points, unpack_rgb

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = make_blobs(400, 2, centers=3, cluster_std=1.5, random_state=0)[0]
WIDE = make_blobs(400, 5, centers=3, cluster_std=2.0, random_state=0)[0]
FIELDS = {"step", "iteration", "caption", "labels", "rgb", "centers", "ellipses", "sizes", "objective", "bound"}


@cache
def trace(name):
    return {
        "kmeans": lambda: KMeans(3, init="forgy", n_init=1, random_state=1).fit_trace(X),
        "wide": lambda: KMeans(3, init="forgy", n_init=1, random_state=1).fit_trace(WIDE),
        "one column": lambda: GaussianMixture(3, init_params="random_from_data", max_iter=6, random_state=0).fit_trace(
            WIDE[:, :1]
        ),
        "batches": lambda: MiniBatchKMeans(3, batch_size=50, random_state=0).fit_trace(X),
        "fuzzy": lambda: FuzzyCMeans(3, init="forgy", n_init=1, random_state=1).fit_trace(X),
        "gaussians": lambda: GaussianMixture(3, init_params="random_from_data", random_state=0).fit_trace(X),
        "tied": lambda: GaussianMixture(3, covariance_type="tied", random_state=0).fit_trace(WIDE),
        "diagonal": lambda: GaussianMixture(3, covariance_type="diag", random_state=0).fit_trace(WIDE),
        "spherical": lambda: GaussianMixture(3, covariance_type="spherical", random_state=0).fit_trace(WIDE),
        "tails": lambda: Mixture(2, "student_t", max_iter=4, random_state=0).fit_trace(X),
        "counts": lambda: Mixture(2, "poisson", random_state=0).fit_trace(np.floor(np.abs(X))),
    }[name]()


NAMES = [
    "kmeans",
    "wide",
    "one column",
    "batches",
    "fuzzy",
    "gaussians",
    "tied",
    "diagonal",
    "spherical",
    "tails",
    "counts",
]
every = pytest.mark.parametrize("name", NAMES)


# plain data


@every
def test_the_dictionary_is_the_data_of_the_player(name):
    animation = plots.animate(trace(name))
    told = animation.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["kind"] == "player"
    assert told["rows"] == told["shown"] == 400
    k = len(told["names"])
    assert len(told["colors"]) == k
    assert [frame["caption"] for frame in told["frames"]] == [step.caption for step in trace(name).steps]
    np.testing.assert_allclose([frame["objective"] for frame in told["frames"]], trace(name).objectives)
    for frame in told["frames"]:
        assert set(frame) == FIELDS
        assert len(frame["centers"]) == len(frame["sizes"]) == k
        assert frame["ellipses"] is None or len(frame["ellipses"]) == k


@every
def test_points_and_centers_are_in_the_box(name):
    animation = plots.animate(trace(name))
    x0, x1, y0, y1 = animation.box
    for places in (animation.points, *(frame.centers for frame in animation.frames)):
        assert np.all((places >= [x0, y0]) & (places <= [x1, y1]))


def test_columns_are_shown_as_they_are():
    animation = plots.animate(trace("kmeans"))
    assert animation.axes == ["column 0", "column 1"]
    np.testing.assert_allclose(animation.points, X)
    told = animation.to_dict()
    np.testing.assert_allclose(unpack_points(told["points"], told["box"]), X, atol=1e-3)
    np.testing.assert_allclose(animation.frames[-1].centers, trace("kmeans").model.cluster_centers_)


def test_two_of_many_columns_can_be_chosen():
    animation = plots.animate(trace("wide"), columns=["column 3", 1])
    assert animation.axes == ["column 3", "column 1"]
    np.testing.assert_allclose(animation.points, WIDE[:, [3, 1]])
    with pytest.raises(ParameterError, match="columns"):
        plots.animate(trace("wide"), columns=["column 9"])


def test_many_columns_are_shown_on_their_principal_axes():
    animation = plots.animate(trace("wide"))
    assert animation.axes[0].startswith("principal axis 1")
    away = np.linalg.norm(animation.points[:, None] - animation.frames[-1].centers, axis=2).argmin(axis=1)
    assert np.mean(away == trace("wide").model.labels_) > 0.95


def test_one_column_is_a_histogram_of_points():
    animation = plots.animate(trace("one column"))
    assert animation.axes == ["column 0"]
    np.testing.assert_allclose(animation.points[:, 0], WIDE[:, 0])
    assert animation.points[:, 1].max() < 1.0 < animation.frames[0].centers[:, 1].min()
    assert len(np.unique(animation.points.round(9), axis=0)) == 400


def test_frames_have_labels_only_if_they_change():
    frames = plots.animate(trace("kmeans")).to_dict()["frames"]
    assert frames[0]["labels"] is None
    for frame, step in zip(frames, trace("kmeans").steps, strict=True):
        assert frame["rgb"] is None
        if frame["labels"] is not None:
            np.testing.assert_array_equal(unpack_labels(frame["labels"], 3), step.labels)
        if step.kind == "update":
            assert frame["labels"] is None


@pytest.mark.parametrize("name", ["gaussians", "fuzzy", "counts"])
def test_rows_of_several_clusters_have_blends_of_their_colours(name):
    told, found = plots.animate(trace(name)).to_dict(), trace(name)
    assert told["soft"]
    assert told["frames"][0]["rgb"] is None
    last = None
    for frame, step in zip(told["frames"][1:], found.steps[1:], strict=True):
        last = frame["rgb"] or last
        wanted = blends(found.shares(step), colours(len(told["names"])))
        np.testing.assert_allclose(unpack_rgb(last), wanted, atol=3 / 255)


@pytest.mark.parametrize("name", ["gaussians", "tied", "diagonal", "spherical"])
def test_ellipses_are_two_standard_deviations_of_the_components(name):
    found = trace(name)
    last = plots.animate(found).frames[-1]
    display = plots.EllipsesDisplay.from_estimator(found.model, found.rows, deviations=2)
    for (x, y, a, b, angle), outline in zip(last.ellipses, display.outlines()[0], strict=True):
        turned = (outline - [x, y]) @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose((turned / [a, b]) ** 2 @ [1, 1], 1.0, rtol=1e-6)


def test_models_without_covariances_have_no_ellipses():
    assert all(frame.ellipses is None for name in ("kmeans", "counts") for frame in plots.animate(trace(name)).frames)
    assert all(frame.ellipses is not None for frame in plots.animate(trace("tails")).frames)


def test_only_mixtures_have_a_curve_of_the_bound():
    soft = plots.animate(trace("gaussians")).frames
    assert soft[0].bound is None
    assert all(frame.bound is not None for frame in soft[1:])
    assert all(frame.bound is None for frame in plots.animate(trace("kmeans")).frames)


def test_pages_of_many_rows_and_steps_stay_small():
    many = make_blobs(5000, 2, centers=8, cluster_std=3.0, random_state=0)[0]
    found = GaussianMixture(8, init_params="random_from_data", max_iter=6, random_state=0).fit_trace(many)
    long = replace(found, steps=found.steps * 30)
    animation = plots.animate(long)
    assert len(animation.frames) == 240
    assert animation.frames[-1].caption == found.steps[-1].caption
    assert 500 <= len(animation.points) < 5000
    assert len(animation.to_html()) < 1_000_000
    assert len(plots.animate(found).points) == 5000


def test_animate_accepts_only_traces():
    with pytest.raises(ParameterError, match="fit_trace"):
        plots.animate(KMeans(2).fit(X))


# pages


def test_a_page_is_one_file(tmp_path):
    trace("kmeans").save(tmp_path / "way.html")
    html = (tmp_path / "way.html").read_text()
    assert html == plots.animate(trace("kmeans")).to_html()
    assert "http://" not in html.split("<script", 1)[0]
    assert "KMeans of 400 rows, step by step" in html


def test_a_notebook_gets_a_sandboxed_frame():
    for shown in (trace("kmeans"), trace("kmeans").animate()):
        html = shown._repr_html_()
        assert type(html) is str
        assert html.startswith('<iframe sandbox="allow-scripts"')
        assert "allow-same-origin" not in html


def test_a_notebook_plays_it(visit):
    seen = visit(f"<!doctype html><title>notebook</title><body>{trace('kmeans')._repr_html_()}</body>", calm=True)
    inside = seen.page.frame_locator("iframe")
    inside.get_by_label("Last step").click()
    assert inside.locator(".caption").first.inner_text() == trace("kmeans").steps[-1].caption


@pytest.mark.parametrize("name", ["kmeans", "gaussians", "one column"])
def test_it_plays_in_a_browser(visit, name):
    animation = plots.animate(trace(name))
    seen = visit(animation.to_html(), calm=True)
    caption = seen.page.locator(".caption").first
    assert caption.inner_text() == animation.frames[0].caption
    grey = seen.pixels()
    for frame in animation.frames[1:4]:
        seen.page.keyboard.press("ArrowRight")
        assert caption.inner_text() == frame.caption
    assert seen.pixels() != grey
    seen.page.keyboard.press("End")
    assert caption.inner_text() == animation.frames[-1].caption
    assert seen.colours() > 3


# pictures that move


def opened(data):
    return Image.open(BytesIO(data))


@pytest.mark.parametrize("name", ["kmeans", "one column"])
def test_a_gif_has_a_picture_of_every_step(tmp_path, name):
    trace(name).save(tmp_path / "way.gif", fps=4)
    gif = opened((tmp_path / "way.gif").read_bytes())
    assert gif.n_frames == len(trace(name).steps)
    assert gif.info["loop"] == 0
    pictures = []
    for i in range(gif.n_frames):
        gif.seek(i)
        assert gif.info["duration"] == (250 if i < gif.n_frames - 1 else 1000)
        pictures.append(np.asarray(gif.convert("RGB")))
    for one, other in pairwise(pictures):
        assert (one != other).any(axis=2).sum() > 20
    assert (tmp_path / "way.gif").stat().st_size < 500_000


def test_colours_of_a_gif_are_those_of_the_clusters():
    gif = opened(render_video(plots.animate(trace("kmeans")), ".gif", 2.0))
    gif.seek(gif.n_frames - 1)
    pixels = np.asarray(gif.convert("RGB")).reshape(-1, 3)
    for colour in ("#ffffff", *colours(3)):
        assert (pixels == np.round(255 * as_rgb([colour]))).all(axis=1).sum() > 50, colour


def test_a_picture_shows_curves_up_to_its_step():
    animation = plots.animate(trace("kmeans"))
    film = Video(animation)
    film.show(0)
    np.testing.assert_allclose(film.points.get_facecolors()[:, :3], as_rgb([NOISE]).repeat(400, axis=0))
    film.show(3)
    np.testing.assert_allclose(film.points.get_facecolors()[:, :3], film.rgb[trace("kmeans").steps[3].labels])
    assert animation.frames[3].caption in film.caption.get_text().replace("\n", " ")
    assert len(film.line.get_xdata()) == 4
    np.testing.assert_allclose([bar.get_width() for bar in film.sizes], trace("kmeans").steps[3].sizes)
    np.testing.assert_allclose([name.get_position() for name in film.names], animation.frames[3].centers)


def test_centers_of_many_clusters_are_crosses():
    many = KMeans(90, n_init=1, max_iter=2, random_state=0).fit_trace(X)
    film = Video(plots.animate(many))
    assert {name.get_text() for name in film.names} == {"+"}
    assert {name.get_text() for name in Video(plots.animate(trace("kmeans"))).names} == {"0", "1", "2"}


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="no ffmpeg here")
def test_an_mp4_is_written_by_ffmpeg(tmp_path):
    trace("kmeans").save(tmp_path / "way.mp4")
    assert (tmp_path / "way.mp4").read_bytes()[4:8] == b"ftyp"


def test_without_ffmpeg_the_error_says_what_to_do(tmp_path, monkeypatch):
    from matplotlib.animation import FFMpegWriter

    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(FileNotFoundError, match=r"ffmpeg.*install it, or save as \.gif"):
        trace("kmeans").save(tmp_path / "way.mp4")
    assert list(tmp_path.iterdir()) == []


# files


def test_an_existing_file_is_replaced_only_with_overwrite(tmp_path):
    place = tmp_path / "way.html"
    place.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        trace("kmeans").save(place)
    assert place.read_text() == "mine"
    trace("kmeans").save(place, overwrite=True)
    assert place.read_text() != "mine"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("name", ["way.html", "way.gif"])
def test_a_failed_save_leaves_no_partial_file(tmp_path, monkeypatch, name):
    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        trace("kmeans").save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_invalid_paths_and_speeds_are_errors(tmp_path):
    with pytest.raises(ParameterError, match=r"\.html, \.gif or \.mp4"):
        trace("kmeans").save(tmp_path / "way.png")
    with pytest.raises(FileNotFoundError, match="folder does not exist"):
        trace("kmeans").save(tmp_path / "nowhere" / "way.gif")
    for fps in (0, -1, "fast"):
        with pytest.raises(ParameterError, match="fps"):
            trace("kmeans").save(tmp_path / "way.gif", fps=fps)
    assert list(tmp_path.iterdir()) == []


# the bound


def test_the_figure_of_the_bound_shows_the_trace():
    found = trace("gaussians")
    display = plots.BoundDisplay.from_result(found)
    np.testing.assert_array_equal(display.bound, found.bounds[1:])
    np.testing.assert_array_equal(display.objective, found.objectives[1:])
    assert np.all(display.gaps >= 0)
    assert len(display.gaps) == found.steps[-1].iteration
    above, below = (line.get_ydata() for line in display.lines_)
    assert np.all(below <= above + 1e-9)


def test_one_component_has_no_gap_to_draw():
    display = plots.BoundDisplay.from_result(GaussianMixture(1, reg_covar=0).fit_trace(X))
    np.testing.assert_allclose(display.gaps, 0.0, atol=1e-9)
    display.figure_.draw_without_rendering()


def test_a_trace_without_a_bound_is_an_error():
    with pytest.raises(ParameterError, match="KMeans has no bound"):
        plots.bound(trace("kmeans"))
    with pytest.raises(ParameterError, match="fit_trace"):
        plots.bound(KMeans(2).fit(X))
