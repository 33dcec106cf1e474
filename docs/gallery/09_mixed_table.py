"""
Mixed tables of numbers and categories
======================================

The penguins table has numbers, a sex and an island. ``Mixture.from_frame`` chooses a distribution for each column. No
scaling or encoding is needed.
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
# Beyond six clusters BIC hardly falls. There are three species and two sexes.

model = Mixture.from_frame(frame, 6, random_state=0)
print(pd.Series(model.families_))
print(pd.crosstab([species.to_numpy(), frame["sex"].to_numpy()], model.labels_))

# %%
# The clusters by two columns, and the means of all numeric columns:

numbers = frame.select_dtypes("number")
ax = plots.clusters(model.labels_, numbers, columns=["bill_length_mm", "body_mass_g"])

# %%

means = plots.profiles(model.labels_, numbers)
