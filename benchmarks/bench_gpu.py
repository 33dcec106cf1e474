"""K-means and mixtures on an NVIDIA GPU, beside plain PyTorch and flash-kmeans: ``python -m benchmarks.bench_gpu``.

An iteration is one of a real fit, from the call of one callback to the next: everything is included. The time of a row
is the median. Peers score in TF32 or half precision, so their labels can be wrong; the column "wrong" counts them.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from coterie import KMeans
from coterie.data import tensors
from coterie.kernels.cuda import exact

SHAPES = [  # rows, columns, clusters, floor in ms: reading X once, or the product in half precision
    (1_000_000, 128, 1024, 0.35),
    (10_000_000, 128, 1000, 3.45),
    (2_000_000, 100, 10_000, 5.13),
    (1_000_000, 512, 4096, 5.65),
    (100_000_000, 16, 64, 1.54),
]
ITERATIONS = 14
CHECKED = 100_000  # rows whose labels are compared with the exact ones


def table(n: int, d: int, k: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Overlapping clusters and initial centers, on the GPU."""
    random = torch.Generator(device="cuda").manual_seed(seed)
    options: dict[str, Any] = {"device": "cuda", "generator": random}
    means = torch.randn(k, d, **options) * (1.0 if d <= 32 else 0.35)
    X = torch.empty(n, d, device="cuda")
    for start in range(0, n, (1 << 27) // d):
        block = X[start : start + (1 << 27) // d]
        block.normal_(generator=random)
        block += means[torch.randint(0, k, (len(block),), **options)]
    return X, X[torch.randint(0, n, (k,), **options)].clone()


def coterie_iterations(X: Any, centers: torch.Tensor) -> tuple[float, KMeans]:
    """Median time of an iteration in ms, and the model."""
    times: list[float] = []

    def callback(progress: Any) -> None:
        times.append(time.perf_counter())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KMeans(len(centers), init=centers.cpu().numpy(), max_iter=ITERATIONS, tol=0, callback=callback)
        model.set_params(device="cuda").fit(X)
    return 1e3 * statistics.median(np.diff(times)[1:]), model


def torch_iteration(X: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One iteration in plain PyTorch, with TF32 products."""
    half, labels = centers.square().sum(1) / 2, []
    size = max(1, (1 << 30) // len(centers))
    for start in range(0, len(X), size):
        labels.append((half - X[start : start + size] @ centers.T).argmin(1))
    label = torch.cat(labels)
    sums = torch.zeros_like(centers).index_add_(0, label, X)
    return sums / torch.bincount(label, minlength=len(centers)).clamp(min=1)[:, None], label


def flash_iteration() -> Callable[..., Any] | None:
    """One iteration of flash-kmeans, if it is installed."""
    if find_spec("flash_kmeans") is None:
        return None
    from flash_kmeans import batch_kmeans_Euclid

    def iterate(X: torch.Tensor, centers: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        labels, means, _ = batch_kmeans_Euclid(X[None], len(centers), max_iters=1, init_centroids=centers[None])
        return means[0], labels[0]

    return iterate


def peer_iterations(iterate: Callable[..., Any], X: torch.Tensor, centers: torch.Tensor) -> float:
    times = []
    for _ in range(4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        centers, _ = iterate(X, centers)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[1:])


def wrong(labels: torch.Tensor, X: torch.Tensor, centers: torch.Tensor) -> int:
    """Number of the first rows whose label is not the nearest center."""
    return int((labels[:CHECKED].int() != exact.nearest(X[:CHECKED], centers)).sum())


def lloyd_rows(shapes: list[tuple[int, int, int, float]]) -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    flash = flash_iteration()
    print("| shape | floor ms | coterie ms | wrong | torch ms | wrong | flash-kmeans ms |")
    print("|---|---|---|---|---|---|---|")
    for n, d, k, floor in shapes:
        X, centers = table(n, d, k)
        ours, model = coterie_iterations(X, centers)
        ours = min(ours, coterie_iterations(X, centers)[0])  # the first fit compiles the kernels
        mistakes = wrong(model.predict(X[:CHECKED]), X, torch.from_numpy(model.cluster_centers_).cuda())
        plain = peer_iterations(torch_iteration, X, centers)
        plain_mistakes = wrong(torch_iteration(X[:CHECKED], centers)[1], X, centers)
        peer = "–" if flash is None else f"{peer_iterations(flash, X, centers):.2f}"
        print(
            f"| {n:,} × {d}, {k} | {floor} | {ours:.2f} | {mistakes} | {plain:.2f} | {plain_mistakes} | {peer} |",
            flush=True,
        )
        del X, model
        torch.cuda.empty_cache()


def torch_em(X: torch.Tensor, weights: torch.Tensor, means: torch.Tensor, covariances: torch.Tensor) -> Any:
    """One iteration of EM for full covariances in plain PyTorch, with TF32 products."""
    k, d = means.shape
    size = max(1, (1 << 28) // (k * d))
    factor = torch.linalg.inv(torch.linalg.cholesky(covariances)).transpose(1, 2)
    offset = weights.log() + factor.diagonal(dim1=1, dim2=2).log().sum(1)
    shift = (means[:, None] @ factor).reshape(-1)
    columns = factor.permute(1, 0, 2).reshape(d, -1)
    total, first = torch.zeros_like(weights), torch.zeros_like(means)
    second = torch.zeros(k, d * d, device=X.device)
    for start in range(0, len(X), size):
        x = X[start : start + size]
        squares = (x @ columns - shift).view(len(x), k, d).square().sum(2)
        resp = torch.softmax(offset - 0.5 * squares, dim=1)
        total += resp.sum(0)
        first += resp.T @ x
        second += resp.T @ (x[:, :, None] * x[:, None, :]).view(len(x), -1)
    means = first / total[:, None]
    scatter = second.view(k, d, d) / total[:, None, None] - means[:, :, None] * means[:, None, :]
    return total / total.sum(), means, scatter + 1e-3 * torch.eye(d, device=X.device)


def mixture_row(n: int, d: int, k: int) -> None:
    """Full-covariance EM: a pass on the GPU, a whole iteration of a fit, and plain PyTorch."""
    from coterie import GaussianMixture
    from coterie.kernels.cuda import DeviceArray, gaussian

    X, means = table(n, d, k)
    times: list[float] = []
    options = {"weights_init": np.full(k, 1 / k), "means_init": means.cpu().numpy(), "tol": 1e-9, "max_iter": 12}
    precisions = np.repeat(np.eye(d)[None], k, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianMixture(k, precisions_init=precisions, callback=lambda _: times.append(time.perf_counter()))
        model.set_params(**options).fit(X)
    components, rows, passes = model._fitted_model.gaussians(model._components), DeviceArray(X), []
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        gaussian.em(rows, None, components)
        passes.append(time.perf_counter() - start)
    params = [torch.from_numpy(each).cuda().float() for each in (options["weights_init"], options["means_init"])]
    params.append(torch.from_numpy(precisions).cuda().float())
    peer = []
    for _ in range(4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        torch_em(X, *params)
        torch.cuda.synchronize()
        peer.append(time.perf_counter() - start)
    whole = 1e3 * statistics.median(np.diff(times)[1:])
    print(
        f"EM, full covariances, {n:,} × {d}, {k}: pass {1e3 * min(passes):.2f} ms, iteration {whole:.2f} ms, "
        f"plain PyTorch {1e3 * min(peer):.2f} ms",
        flush=True,
    )


def metric_rows(n: int) -> None:
    """Metrics of tensors, in ms."""
    from coterie import metrics

    X, means = table(n, 32, 10)
    labels = exact.nearest(X, means)
    some = slice(0, min(n, 100_000))
    calls: dict[str, Callable[[], Any]] = {
        f"Calinski-Harabasz, {n:,} × 32": lambda: metrics.calinski_harabasz_score(X, labels),
        f"Davies-Bouldin, {n:,} × 32": lambda: metrics.davies_bouldin_score(X, labels),
        f"simplified silhouette, {n:,} × 32": lambda: metrics.silhouette_score(X, labels, approximation="simplified"),
        f"silhouette, {len(X[some]):,} × 32": lambda: metrics.silhouette_score(X[some], labels[some]),
    }
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        print(f"{name}: {1e3 * (time.perf_counter() - start):.0f} ms", flush=True)


def seeding_row(n: int = 10_000_000, d: int = 128, k: int = 64) -> None:
    """Greedy k-means++, from rows on the GPU."""
    from coterie.seeding import plusplus

    X, _ = table(n, d, k)
    source = tensors.tensor_source(X)
    from coterie.engines.cuda import Cuda

    times = []
    for seed in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        plusplus(source, Cuda(), np.random.default_rng(seed), k, 16.0)
        times.append(1e3 * (time.perf_counter() - start))
    print(f"k-means++, {2 + int(np.log(k))} candidates, {n:,} × {d}, {k}: {min(times[1:]):.0f} ms")


def batch_row(count: int = 1000, n: int = 10_000, d: int = 16, k: int = 8) -> None:
    """Many small fits at once, of up to 20 iterations: of tables, and restarts on one table."""
    from coterie.kernels.cuda import batched

    random = torch.Generator(device="cuda").manual_seed(0)
    options: dict[str, Any] = {"device": "cuda", "generator": random}
    means = 2 * torch.randn(count, k, d, **options)
    labels = torch.randint(0, k, (count, n), **options)
    X = torch.randn(count, n, d, **options) + means.gather(1, labels[..., None].expand(-1, -1, d))
    for name, tables in (("tables", X), ("restarts on one table", X[:1].contiguous())):
        prepared, times = batched.as_tables(tables, n), []
        which = np.arange(count) % len(tables)
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            fits = batched.fit_all(
                prepared, which, np.full(count, k), X[:, :k].contiguous(), np.zeros(count), 20, None, True
            )
            times.append(1e3 * (time.perf_counter() - start))
        passes = statistics.mean(len(history) for history in fits.histories)
        print(f"{count} fits of {name} {n:,} × {d}, {k}: {min(times[1:]):.1f} ms for {passes:.1f} passes", flush=True)


def auto_rows() -> None:
    """Fits of arrays on the CPU and on the GPU, beside the costs that device="auto" estimates."""
    from coterie.data.device_costs import KERNELS, estimated_costs
    from coterie.machine import thread_count

    print("| rows, columns, clusters | CPU s | estimated | GPU s, after a first fit | estimated |")
    for n, d, k in ((100_000, 16, 8), (1_000_000, 16, 32), (300_000, 64, 100), (200_000, 128, 500)):
        X = table(n, d, k)[0].cpu().numpy()
        seconds = []
        for device in ("cpu", "cuda"):
            for _ in range(2):
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    KMeans(k, init=X[:k], max_iter=19, tol=0, device=device, algorithm="lloyd").fit(X)
                last = time.perf_counter() - start
            seconds.append(last)
        costs = estimated_costs(n, d, k, X.nbytes, thread_count(None), True)
        print(
            f"| {n:,} × {d}, {k} | {seconds[0]:.3f} | {costs.cpu:.3f} | {seconds[1]:.3f} | {costs.gpu - KERNELS:.3f} |",
            flush=True,
        )


def streaming_row(n: int = 25_000_000, d: int = 64, k: int = 64) -> None:
    """Passes over rows in main memory."""
    X = np.empty((n, d), np.float32)
    block = np.random.default_rng(0).normal(size=(1_000_000, d)).astype(np.float32)
    for start in range(0, n, len(block)):
        X[start : start + len(block)] = block[: n - start]
    fraction, tensors.FREE_FRACTION = tensors.FREE_FRACTION, 0.0
    try:
        ms, _ = coterie_iterations(X, torch.from_numpy(X[:k]))
    finally:
        tensors.FREE_FRACTION = fraction
    print(f"streaming from main memory, {n:,} × {d}, {k}: {X.nbytes / ms / 1e6:.1f} GB/s, {ms:.0f} ms an iteration")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    factor = 10 if parser.parse_args().quick else 1
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    lloyd_rows([(n // factor, d, k, floor / factor) for n, d, k, floor in SHAPES])
    mixture_row(1_000_000 // factor, 32, 64)
    mixture_row(10_000_000 // factor, 16, 16)
    seeding_row(10_000_000 // factor)
    batch_row(1000 // factor)
    auto_rows()
    metric_rows(10_000_000 // factor)
    streaming_row(25_000_000 // factor)


if __name__ == "__main__":
    main()
