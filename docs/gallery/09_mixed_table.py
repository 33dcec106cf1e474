"""
A table of numbers and categories
=================================

Penguins have numbers, a sex and an island. ``Mixture.from_frame`` gives every column a distribution that fits it;
nothing is scaled or encoded.
"""

import pandas as pd

from coterie import Mixture, plots
from coterie.datasets import load_demo

table = pd.DataFrame(load_demo("penguins").data)
table = table[table["sex"] != ""].dropna()
species = table.pop("species")
frame = table.drop(columns="year")

for k in range(2, 8):
    print(k, round(Mixture.from_frame(frame, k, random_state=0).bic(frame)))

# %%
# Beyond six clusters BIC hardly falls: three species, two sexes.

model = Mixture.from_frame(frame, 6, random_state=0)
print(pd.Series(model.families_))
print(pd.crosstab([species.to_numpy(), frame["sex"].to_numpy()], model.labels_))

# %%
# What the clusters are made of:

numbers = frame.select_dtypes("number")
ax = plots.clusters(model.labels_, numbers, columns=["bill_length_mm", "body_mass_g"])

# %%

means = plots.profiles(model.labels_, numbers)
