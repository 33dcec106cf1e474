"""Press Ctrl-C at random moments of a computation, again and again, and count what comes of it.

    python tests/interrupts/ctrl_c.py 100 2 KMeans linkage  # 100 times each on 2 threads; without names, every case

Another process sends the signals, so that they come at any moment, compiled code included. After each, nothing may be
left behind: no handler, no limit on the threads of BLAS, no call in a worker thread. At the end the same computation,
undisturbed, must give the same bits as before.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter

import numpy as np
from threadpoolctl import threadpool_info

import coterie
from coterie import distances, hierarchy, interrupts, machine, metrics, selection
from coterie.errors import FitInterruptedWarning

SENDER = """
import os, signal, sys, time
for line in sys.stdin:
    time.sleep(float(line))
    os.kill(os.getppid(), signal.SIGINT)
    print(time.monotonic(), flush=True)
"""
rng = np.random.default_rng(0)


def blobs(n, d, k):
    return rng.normal(size=(k, d))[rng.integers(k, size=n)] * 3 + rng.normal(size=(n, d))


SMALL, LARGE, WIDE, COLUMN = blobs(300, 3, 4), blobs(6000, 8, 8), blobs(20000, 16, 8), blobs(20000, 1, 5)
SERIES = np.sin(np.linspace(0, 6, 30) * rng.integers(1, 4, size=(120, 1))) + rng.normal(0, 0.3, (120, 30))
HOLES = np.where(rng.random(LARGE.shape) < 0.1, np.nan, LARGE)


def fitted(name, X, *args, **options):
    def run(n_jobs):
        threads = {"n_jobs": n_jobs} if "n_jobs" in getattr(coterie, name)().get_params() else {}
        seed = {"random_state": 0} if "random_state" in getattr(coterie, name)().get_params() else {}
        return getattr(coterie, name)(*args, **options, **threads, **seed).fit(X).labels_

    return run


MODEL = coterie.KMeans(4, n_init=1, random_state=0)
CASES = {
    "KMeans": fitted("KMeans", WIDE, 16, n_init=2),
    "KMeans search": fitted("KMeans", LARGE, 12, search="fast", search_budget=5),
    "KMeans exact": fitted("KMeans", COLUMN, 30, algorithm="exact"),
    "KMeans branch": fitted("KMeans", SMALL[:26, :2], 4, algorithm="exact"),
    "KMeans missing": fitted("KMeans", HOLES, 12, missing="ignore", n_init=2, search="none"),
    "MiniBatchKMeans": fitted("MiniBatchKMeans", WIDE, 32),
    "BisectingKMeans": fitted("BisectingKMeans", WIDE, 24),
    "BalancedKMeans": fitted("BalancedKMeans", LARGE[:1500], 8),
    "KernelKMeans": fitted("KernelKMeans", LARGE[:1000], 8, n_init=3),
    "KMedians": fitted("KMedians", LARGE[:3000], 8, n_init=2),
    "KMedoids": fitted("KMedoids", LARGE[:1200], 8, n_init=3),
    "SphericalKMeans": fitted("SphericalKMeans", LARGE, 16, n_init=2),
    "FuzzyCMeans": fitted("FuzzyCMeans", LARGE, 8, n_init=2),
    "TimeSeriesKMeans": fitted("TimeSeriesKMeans", SERIES, 3, n_init=1),
    "GaussianMixture": fitted("GaussianMixture", LARGE[:2000], 3),
    "BayesianGaussianMixture": fitted("BayesianGaussianMixture", LARGE, 6),
    "Mixture": fitted("Mixture", SMALL, "student_t", 3),
    "AgglomerativeClustering": fitted("AgglomerativeClustering", LARGE[:3000], 5, linkage="average"),
    "DivisiveClustering": fitted("DivisiveClustering", LARGE[:1500], 5),
    "HDBSCAN": fitted("HDBSCAN", WIDE[:9000], 10),
    "HDBSCAN few columns": fitted("HDBSCAN", WIDE[:, :2], 10),
    "DBSCAN": fitted("DBSCAN", WIDE[:, :3], 0.4),
    "DBSCAN auto": fitted("DBSCAN", LARGE[:3000, :2], "auto"),
    "transform": lambda n_jobs: coterie.KMeans(8, random_state=0, n_jobs=n_jobs).fit(LARGE).transform(WIDE[:, :8]),
    "linkage": lambda n_jobs: hierarchy.linkage(LARGE, "ward", n_jobs=n_jobs),
    "linkage single": lambda n_jobs: hierarchy.linkage(WIDE[:, :2], "single", n_jobs=n_jobs),
    "silhouette": lambda n_jobs: metrics.silhouette_samples(LARGE, LARGE[:, 0] > 0, n_jobs=n_jobs),
    "pairwise": lambda n_jobs: distances.pairwise(LARGE[:3000], metric="manhattan", n_jobs=n_jobs),
    "choose_k": lambda n_jobs: np.array(
        [coterie.choose_k(SMALL, range(1, 5), budget="quick", random_state=0, n_jobs=n_jobs).recommended]
    ),
    "sweep": lambda n_jobs: selection.sweep(
        coterie.KMeans(random_state=0, n_jobs=n_jobs), LARGE, range(2, 8)
    ).objectives,
    "gap_statistic": lambda n_jobs: selection.gap_statistic(
        SMALL, range(1, 6), n_references=10, random_state=0, n_jobs=n_jobs
    ).gap,
    "stability": lambda n_jobs: selection.stability(
        MODEL, SMALL, range(2, 5), n_resamples=10, random_state=0, n_jobs=n_jobs
    ).mean,
    "mixture_table": lambda n_jobs: selection.mixture_table(
        SMALL, range(1, 4), structures=["EII", "VVV"], random_state=0, n_jobs=n_jobs
    ).bic,
    "diagnose": lambda n_jobs: np.array([coterie.diagnose(SMALL, random_state=0, n_jobs=n_jobs).n_clusters]),
}  # fmt: skip


class Sender:
    """Another process, which sends SIGINT to this one after a delay."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SENDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            start_new_session=True,
        )  # fmt: skip

        self.times, self.count = [], 0  # read by a thread of its own, which Ctrl-C cannot keep from reading a line
        threading.Thread(target=lambda: self.times.extend(map(float, self.process.stdout)), daemon=True).start()

    def send(self, delay):
        self.count += 1
        self.process.stdin.write(f"{delay}\n")

    def wait(self):
        while len(self.times) < self.count:
            time.sleep(0.001)
        return self.times[-1]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def press(sender, run, delay):
    """The outcome of `run` with Ctrl-C after `delay` seconds, and the seconds from then to its end."""
    outcome, ended = None, None
    try:
        sender.send(delay)
        outcome = attempt(run)
        ended = time.monotonic()
        sender.wait()
        time.sleep(0.05)
        outcome = "lost" if outcome == "complete" else outcome  # else it comes too late, and is raised here
    except KeyboardInterrupt:
        ended, outcome = ended or time.monotonic(), outcome or "KeyboardInterrupt"
    return outcome, max(0.0, ended - sender.wait())


def attempt(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run()
        except Exception as error:
            traceback.print_exc()
            return type(error).__name__
    return "kept" if any(w.category is FitInterruptedWarning for w in caught) else "complete"


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def is_stuck(pool):
    """Whether no thread of the pool takes another call; calls that were cancelled wait in its queue until then."""
    try:
        return pool.submit(bool).result(timeout=60)
    except TimeoutError:
        return True


def left_behind(before):
    """What an interrupt has not put back."""
    faults = {
        "handler": signal.getsignal(signal.SIGINT) is not signal.default_int_handler,
        "blas limit": blas_threads() != before or machine.one_blas_thread._users != 0,
        "guards": bool(machine.one_blas_thread._thread.guards),
        "lock": machine.one_blas_thread._lock.locked() or machine._pools._lock.locked(),
        "nesting": interrupts._thread.keeps or interrupts._thread.group is not None or interrupts._request.pending,
        "busy thread": any(is_stuck(pool) for pool in machine._pools._pools.values()),
    }
    return [name for name, fault in faults.items() if fault]


def study(sender, run, times):
    """Outcomes of `times` interrupts, the longest wait, and whether an undisturbed run is as before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = run()  # compiles
        start = time.monotonic()
        run()
        seconds = time.monotonic() - start
        outcomes, waits, faults, before = Counter(), [], Counter(), blas_threads()
        for _ in range(times):
            outcome, wait = press(sender, run, rng.random() * seconds)
            outcomes[outcome] += 1
            waits.append(wait)
            faults.update(left_behind(before))
        same = np.array_equal(np.asarray(wanted), np.asarray(run()))
    return {
        "seconds": round(seconds, 3), "outcomes": dict(outcomes), "longest_wait": round(max(waits, default=0.0), 3),
        "left_behind": dict(faults), "same": same,
    }  # fmt: skip


def main(times, n_jobs, names):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs without
    sender = Sender()
    for name in names or CASES:
        result = study(sender, lambda name=name: CASES[name](n_jobs), times)
        print(json.dumps({"case": name, "n_jobs": n_jobs, **result}), flush=True)
    sender.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
