"""
What is wrong with this table
=============================

``diagnose`` measures what clustering suffers from, says it in sentences, and tells what to do.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import coterie
from coterie import KMeans, plots

rng = np.random.default_rng(0)
young, old = rng.normal([30, 52_000], [4, 9_000], (300, 2)), rng.normal([60, 55_000], [4, 9_000], (300, 2))
customers = pd.DataFrame(np.concatenate([young, old]), columns=["age", "income"])
print(coterie.diagnose(customers, random_state=0))

# %%
# Two groups of age, and distances that see the income alone. Scaled, the groups show. What is left is that they are
# long: the age now varies within a group less than the income does.

scaled = (customers - customers.mean()) / customers.std()
print(coterie.diagnose(scaled, random_state=0))

figure = Figure(figsize=(11, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
plots.clusters(KMeans(2, random_state=0).fit(customers).labels_, customers, ax=left)
plots.clusters(KMeans(2, random_state=0).fit(scaled).labels_, customers, ax=right)
left.set_title("as they are", loc="left")
right.set_title("scaled", loc="left")
