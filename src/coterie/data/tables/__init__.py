"""Tabular files: text, Parquet, Arrow, NDJSON, Excel, .npy, .npz and .safetensors, for library and command line alike.

Importing this package is cheap: Polars is loaded by the modules that need it.
"""
