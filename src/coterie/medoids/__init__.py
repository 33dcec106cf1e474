"""K-medoids: centers that are rows, by any distance."""
