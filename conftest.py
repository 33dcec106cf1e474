"""Modules of the GPU engine are collected for their examples only where PyTorch is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/coterie/kernels/cuda/*", "src/coterie/engines/cuda.py"]
