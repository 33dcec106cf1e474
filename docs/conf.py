"""How the site is built from this folder: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import coterie  # noqa: E402

project = "coterie"
author = "the coterie developers"
copyright = "the coterie developers, BSD-3-Clause"
version = release = coterie.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "figures",
    "mathml",
    "own_members",
    "pages",
    "offline",
]
exclude_patterns = ["_build", "gallery", "auto/**/*.py", "auto/**/*.ipynb"]
templates_path = ["_templates"]

# pages: Markdown, as it reads on its own

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# API: what docstrings say; a name in backticks is a link where there is a page for it

default_role = "py:obj"
add_module_names = False
toc_object_entries = False
autodoc_typehints = "none"
autosummary_generate = True
autosummary_filename_map = {  # else these would share a file with `sweep`, `fit`, ... where case does not count
    f"coterie.{name}": f"coterie.{name}_"
    for name in ("selection.Stability", "selection.Sweep", "selection.Tendency", "core.loop.Fit")
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# gallery: examples run, their figures are shown

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "parallel": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "capture_repr": (),
    "show_memory": False,
    "reset_modules": (),
    "image_scrapers": ("figures.show",),
    "abort_on_example_error": True,
    "write_computation_times": False,
    "notebook_extensions": set(),
}

# looks: nothing is fetched from anywhere

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is
html_title = "coterie"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"**": ["pages.html"]}
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_center": ["sections.html"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "logo": {"text": "coterie"},
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
