"""
Texts: HDBSCAN of embeddings
============================

The texts are the documentation of functions of SciPy. TF-IDF and a singular value decomposition turn each text into 12
numbers; vectors of a language model are used in the same way. HDBSCAN finds groups of similar functions, and leaves
those that are like no other as noise.
"""

import inspect

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.ndimage
import scipy.signal.windows
import scipy.spatial.distance
import scipy.special
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from coterie import HDBSCAN, plots

modules = [scipy.fft, scipy.linalg, scipy.ndimage, scipy.signal.windows, scipy.spatial.distance, scipy.special]
functions = {f"{m.__name__[6:]}.{name}": getattr(m, name) for m in modules for name in sorted(m.__all__)}
texts = {name: inspect.getdoc(function) or "" for name, function in functions.items() if callable(function)}
names = np.array([name for name, text in texts.items() if len(text) > 300])
vectors = TfidfVectorizer(stop_words="english", sublinear_tf=True, max_df=0.3).fit_transform(texts[n] for n in names)
X = normalize(TruncatedSVD(12, random_state=0).fit_transform(vectors))  # all of length 1

model = HDBSCAN(min_cluster_size=8, min_samples=4).fit(X)
noise = (model.labels_ == -1).mean()
print(f"{len(names)} texts, {model.n_clusters_} clusters, {noise:.0%} noise")
for cluster in range(model.n_clusters_):
    members = names[model.labels_ == cluster]
    typical = members[np.argsort(-model.probabilities_[model.labels_ == cluster], kind="stable")[:3]]
    print(f"{len(members):3d} texts, such as {', '.join(typical)}")

plots.clusters(model.labels_, X, map="neighbours")

# %%
# Valleys of the reachability plot are clusters; the deepest ones have nearly the same text.

plots.reachability(model)

# %%
# Outlier scores rank the functions that are described in a way of their own.

for row in np.argsort(-model.outlier_scores_)[:5]:
    print(f"{model.outlier_scores_[row]:.2f}  {names[row]}")
