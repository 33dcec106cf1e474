"""Examples of the pages run as tests; what Sphinx reads or writes does not."""

collect_ignore_glob = ["conf.py", "_build", "_extensions", "auto", "gallery"]
