"""Suffixes of files with tables, in lower case; a module that loads no library."""

TEXT = (".csv", ".tsv", ".txt")
BINARY = (".parquet", ".arrow", ".feather")
JSON_LINES = (".ndjson", ".jsonl")
EXCEL = (".xlsx", ".xls", ".ods")
ARRAYS = (".npy", ".npz", ".safetensors")
BATCHED = (*TEXT, *BINARY, *JSON_LINES, ".npy")  # can be read in batches of rows
READABLE = (*TEXT, *BINARY, *JSON_LINES, *EXCEL, *ARRAYS)
