"""All benchmarks, one after the other, then every ratio in one table."""

from __future__ import annotations

from benchmarks import (
    bench_answer,
    bench_balanced,
    bench_bayesian,
    bench_choose,
    bench_cold,
    bench_density,
    bench_distances,
    bench_dtw,
    bench_families,
    bench_fit,
    bench_fuzzy,
    bench_gap,
    bench_kernel,
    bench_linkage,
    bench_lloyd,
    bench_medians,
    bench_medoids,
    bench_metrics,
    bench_mixture,
    bench_relatives,
    bench_search,
    bench_seeding,
    bench_start,
    peak,
)
from benchmarks.harness import machine_table, options_from, parser, write_json
from benchmarks.report import markdown, summary

SUBJECTS = {
    "peak": peak.run,
    "lloyd": bench_lloyd.run,
    "fit": bench_fit.run,
    "answer": bench_answer.run,
    "families": bench_families.run,
    "fuzzy": bench_fuzzy.run,
    "kernel": bench_kernel.run,
    "balanced": bench_balanced.run,
    "bayesian": bench_bayesian.run,
    "choose": bench_choose.run,
    "distances": bench_distances.run,
    "series": bench_dtw.run,
    "medians": bench_medians.run,
    "medoids": bench_medoids.run,
    "metrics": bench_metrics.run,
    "gap": bench_gap.run,
    "linkage": bench_linkage.run,
    "density": bench_density.run,
    "mixture": bench_mixture.run,
    "relatives": bench_relatives.run,
    "seeding": bench_seeding.run,
    "search": bench_search.run,
    "start": bench_start.run,
    "cold": bench_cold.run,
}


def main() -> None:
    arguments_parser = parser("Benchmarks of coterie beside other libraries.")
    arguments_parser.add_argument("--only", action="append", choices=SUBJECTS, help="only this benchmark")
    arguments = arguments_parser.parse_args()
    options = options_from(arguments)
    print(markdown(machine_table()))
    results = {}
    for subject in arguments.only or SUBJECTS:
        results[subject] = SUBJECTS[subject](options)
        for table in results[subject].tables:
            print(markdown(table), flush=True)
        write_json(arguments.json, results)
    print(markdown(summary([ratio for result in results.values() for ratio in result.ratios])))


if __name__ == "__main__":
    main()
