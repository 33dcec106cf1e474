"""A Dask cluster of two workers that are threads of this process."""

from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def local_cluster(n_workers=2):
    import distributed

    with distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:  # fmt: skip
        yield cluster
