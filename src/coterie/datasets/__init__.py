"""Random data sets with known clusters, and small demo tables, for documentation and tests."""

from coterie.datasets.demo_tables import DEMOS, DemoTable, demo_file, load_demo, write_demo
from coterie.datasets.generators import GaussianTruth, make_blobs, make_gaussians, make_moons, make_rings

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
