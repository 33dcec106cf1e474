"""Remedies of `coterie.diagnose` as options of the command line, for reports of commands."""

from dataclasses import replace

from coterie.diagnosis.findings import Check, Diagnosis, Finding
from coterie.diagnosis.n_clusters_checks import MOVE_CENTERS
from coterie.diagnosis.nonconvex_checks import ELONGATED

SINGLE = "Use -a single, which links nearest neighbours, or -a kernel --kernel rbf."
REMEDIES = {
    "missing_values": "Use --missing ignore (kmeans, gmm and mixture), --missing median or --missing drop.",
    "unscaled_columns": "If the columns have different units, use --scale standard. -a gmm with --covariance diag or "
    "full does not depend on the scale of the columns.",
    "dominating_column": "Use --scale standard, or leave the column out with --exclude. If only this column matters, "
    "cluster it alone with --columns.",
    "constant_columns": "Leave these columns out with --exclude: they do not help to separate clusters.",
    "correlated_columns": "Leave out one column of each pair with --exclude.",
    "duplicated_rows": "If the duplicates are errors, drop them. If not, keep each row once, and its count in a column "
    "for --weight: the clusters are the same, and the fit is faster.",
    "outliers": "Check these rows, and drop them if they are errors. Or use -a kmedians or -a kmedoids, whose centers "
    "a few rows hardly change.",
    "concentration": "Use fewer columns with --columns or --exclude. For texts and embeddings, whose directions carry "
    "the meaning, use -a spherical.",
    "evenly_spread": "To find clusters, use other columns. If you only need compact groups of similar size, -a kmeans "
    "provides them.",
    "one_cluster": "Do not rely on any number of clusters for these rows. Clusters may appear after scaling, or in "
    "other columns. For clusters that overlap, compare 1 and 2 components by BIC: coterie choose-k -a gmm -k 1:2.",
    "elongated_clusters": "Use -a gmm --covariance full, or tied if all clusters have the same shape. If the columns "
    "have different units, use --scale standard.",
    "heavy_tails": "Use -a kmedians or -a kmedoids, which do not square distances. Or take logarithms of skewed "
    "columns.",
    "unequal_spread": "Use -a gmm --covariance spherical, which estimates the width and weight of each cluster, or "
    "--covariance full, which also estimates its shape.",
    "unequal_sizes": "Use --search thorough to check that no small clusters were merged. Or use -a gmm, which "
    "estimates the weights of the clusters.",
    "tiny_clusters": "Check whether these rows are outliers. If they are, use -a kmedians, -a kmedoids or a smaller "
    "-k. -a balanced --size-min sets a minimum size.",
    "hollow_clusters": "For rings and arcs, use -a single or -a kernel --kernel rbf. If several clusters were merged, "
    "use a larger -k.",
    "too_many_clusters": "Use a smaller -k. If the joined cluster is elongated, use -a gmm, which does not split it.",
    "too_few_clusters": "Use a larger -k. If K is right, use --search thorough: a poor initialisation may have merged "
    "two clusters.",
    "boundary_rows": "Use -a gmm or -a fuzzy, which give each row a degree of membership in every cluster. Or try "
    "another -k.",
    "unstable_starts": "Use --search thorough, which improves on the result of restarts. Or try another -k: runs "
    "disagree most if K does not fit the data.",
    "missed_pieces": SINGLE,
    "nested_clusters": SINGLE,
    "missed_optimum": "Use -a kmeans --search thorough.",
}


def with_command_remedies(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with remedies that name options of the command line."""
    return replace(diagnosis, checks={name: _with_remedy(check) for name, check in diagnosis.checks.items()})


def _with_remedy(check: Check) -> Check:
    finding = check.finding
    if finding is None:
        return check
    return replace(check, finding=replace(finding, remedy=command_remedy(finding)))


def command_remedy(finding: Finding) -> str:
    """The remedy of a finding for the command line."""
    if finding.check == "missed_pieces" and finding.details["form"] == ELONGATED:
        return "Use -a gmm --covariance full, or -a single."
    if finding.check == "too_few_clusters" and "pairs" in finding.details:
        return f"{MOVE_CENTERS.format('--search thorough')} Then compare numbers of clusters with coterie choose-k."
    return REMEDIES[finding.check]
