"""A fuzzer for coterie: random tables, options and faults, checked by laws.

``python -m fuzz --minutes 10`` runs it. A *subject* is a public name of the library, a *law* is a statement about
subjects, and a *case* is one law checked for one subject with random data. A case depends on the seed of the run and
on its own number only, so that ``python -m fuzz --seed S --case N`` repeats it.
"""
