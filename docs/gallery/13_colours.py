"""
Colour quantisation of an image
===============================

Reduce an image of 270 000 pixels to sixteen colours with mini-batch K-means, which uses a part of the rows at a time.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

from coterie import MiniBatchKMeans

original = load_sample_image("china.jpg")
pixels = (original.reshape(-1, 3) / 255).astype(np.float32)
model = MiniBatchKMeans(16, batch_size=4096, random_state=0).fit(pixels)
quantised = model.cluster_centers_[model.labels_].reshape(original.shape)
print(f"{len(pixels)} pixels, {model.n_steps_} batches, mean squared error {model.inertia_ / len(pixels):.5f}")

figure = Figure(figsize=(12, 4.4), layout="constrained")
for image, ax, name in zip(
    (original, quantised), figure.subplots(1, 2), ("16.7 million colours", "16 colours"), strict=True
):
    ax.imshow(image)
    ax.set_title(name, loc="left")
    ax.set_axis_off()

# %%
# The palette; the width of each colour is its frequency:

order = np.argsort(model.cluster_centers_.sum(axis=1))
share = np.bincount(model.labels_, minlength=16)[order] / len(pixels)
palette = Figure(figsize=(12, 0.8))
strip = palette.subplots()
strip.barh(0, share, left=np.cumsum(share) - share, color=model.cluster_centers_[order])
strip.set_axis_off()
strip.margins(0)
