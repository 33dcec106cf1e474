"""Generated data sets and small bundled tables, for documentation, trials and tests."""

from coterie.datasets.generators import GaussianTruth, make_blobs, make_gaussians, make_moons, make_rings
from coterie.datasets.tables import DEMOS, DemoTable, demo_file, load_demo, write_demo

__all__ = [
    "DEMOS",
    "DemoTable",
    "GaussianTruth",
    "demo_file",
    "load_demo",
    "make_blobs",
    "make_gaussians",
    "make_moons",
    "make_rings",
    "write_demo",
]
