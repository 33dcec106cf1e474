"""
Diagnose a table
================

``diagnose`` checks a table for known problems of clustering. Each finding has a sentence and a remedy.
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
# There are two groups by age, but distances depend almost only on income. After scaling, the groups are found. One
# finding is left: the groups are elongated, because age varies less within a group than income does.

scaled = (customers - customers.mean()) / customers.std()
print(coterie.diagnose(scaled, random_state=0))

figure = Figure(figsize=(11, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
plots.clusters(KMeans(2, random_state=0).fit(customers).labels_, customers, ax=left)
plots.clusters(KMeans(2, random_state=0).fit(scaled).labels_, customers, ax=right)
left.set_title("unscaled", loc="left")
right.set_title("scaled", loc="left")
